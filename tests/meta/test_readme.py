"""What the README says is executed: its commands, its example, its picture."""

import json
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import symptoms

import labkit
from labkit import detect, labs
from labkit.record.probe import Probe

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
SLOW = ("make ", "conda ")


def commands() -> list[str]:
    """The README's shell commands: indented lines, without their comments."""
    without_blocks = re.sub(r"(?s)```.*?```", "", README)
    lines = re.findall(r"(?m)^    (\S.*)$", without_blocks)
    return [line.split("  #")[0].strip() for line in lines if not line.startswith("config ──")]


def run(command: str, tmp_path: Path) -> subprocess.CompletedProcess:
    words = shlex.split(command)
    assert words[0].startswith(".venv/bin/")
    tool = words[0].removeprefix(".venv/bin/")
    module = {"labkit": "labkit", "torchrun": "torch.distributed.run"}[tool]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LABKIT_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    rest = words[1:] if tool == "labkit" else ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", *words[1:]]
    return subprocess.run([sys.executable, "-m", module, *rest], capture_output=True, text=True, env=env, cwd=tmp_path)


def own_script() -> str:
    """The whole script that the README gives to begin with."""
    found = re.search(r"### Your own script\n.*?```python\n(.*?)```", README, re.DOTALL)
    assert found
    return found[1]


def questions() -> dict[str, str]:
    """From the README's table of what to record: by detector, the lab that its row sends to."""
    table = README.split("| To ask | record | `--lab` |")[1].split("\n\n")[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines()[2:]]
    return {name: lab.strip("` ") for asked, _, lab in rows for name in re.findall(r"`([a-z-]+)`", asked.split("? (")[1])}


@pytest.mark.ranks
@pytest.mark.timeout(300)  # a score of commands, each a start of Python and some of torch
def test_every_labkit_command_of_the_readme_runs(tmp_path):
    found = [command for command in commands() if not command.startswith(SLOW)]
    assert len(found) >= 7
    (tmp_path / "my_script.py").write_text(own_script())
    for command in found:
        done = run(command, tmp_path)
        expected = 1 if "--fail-on found" in command else 0
        assert done.returncode == expected, f"{command}\n{done.stdout}\n{done.stderr}"


def test_every_make_target_of_the_readme_exists():
    makefile = (ROOT / "Makefile").read_text()
    named = {command.split()[1] for command in commands() if command.startswith("make ")}
    assert named >= {"lab", "test"}
    for target in named:
        assert re.search(rf"(?m)^{target}:", makefile), target


@pytest.mark.ranks
def test_the_example_of_the_readme_finds_the_duplicate_data(tmp_path):
    example = re.search(r"## Five lines\n\n```python\n(.*?)```", README, re.DOTALL)
    assert example
    script = tmp_path / "example.py"
    script.write_text(example[1])
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LABKIT_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=env, check=True)
    assert "FOUND  rank-duplicates" in done.stdout


def test_the_symptom_table_is_made_from_what_each_lab_says_of_itself():
    assert symptoms.with_table(README) == README, "run python scripts/symptoms.py"
    assert symptoms.with_table(README.replace("every rank reads the same data", "x")) == README


def test_the_symptom_table_comes_first_and_sends_to_every_lab_and_to_variants_that_exist():
    rows = [line.split("|")[-2] for line in README.split("## Start")[0].splitlines() if line.startswith("| ")][1:]
    sent = {}
    for row in rows:
        slug, *variants = re.findall(r"`([^`]+)`", row)
        sent.setdefault(slug, set()).update(variants)
    for spec in labs.specs():
        if spec.variants:
            assert sent.get(spec.slug, set()) <= {variant.name for variant in spec.variants} - {"fixed"}
            assert "broken" in sent.get(spec.slug, set()), spec.slug


def test_the_pictures_of_the_readme_are_there():
    for path in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README):
        assert (ROOT / path).is_file(), path


def test_the_exit_codes_of_the_readme_are_those_of_the_command_line():
    from labkit import cli

    line = next(line for line in README.splitlines() if line.startswith("Exit codes"))
    assert f"{cli.EXIT_FAILED_CHECK} a `--fail-on`" in line
    assert f"{cli.EXIT_WRONG_USE} wrong use" in line
    assert f"{cli.EXIT_PROGRAM_FAILED} the program" in line


@pytest.mark.ranks
def test_the_script_of_the_readme_is_judged_and_its_fault_found(tmp_path):
    (tmp_path / "my_script.py").write_text(own_script())
    assert 20 <= len([line for line in own_script().splitlines() if line]) <= 30
    assert "seven of its lines are the probe's" in README
    assert len(re.findall(r"(?m)^.*(?:[Pp]robe|my_run).*$", own_script())) == 7
    started, judged, *_ = [command for command in commands() if "my_script.py" in command or "my_run" in command]
    done = run(started, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    done = run(judged + " --json -", tmp_path)
    report = json.loads(done.stdout)
    assert report["provenance"]["world_size"] == 2 and report["variant"] == "my_run"
    statuses = {verdict["detector"]: verdict["status"] for verdict in report["verdicts"]}
    assert statuses["rank-duplicates"] == "found" and report["verdicts"][0]["detector"] == "rank-duplicates"
    assert statuses["non-finite"] == "clear" and statuses["coverage"] == "clear"
    done = run(judged + " --figures drawn", tmp_path)
    assert {"who-read-what.png", "coverage.png", "timeline.png", "loss.png"} <= {
        p.name for p in (tmp_path / "drawn").iterdir()
    }
    assert "your script: my_run" in done.stdout and "FOUND" in done.stdout


def test_the_table_of_what_to_record_names_every_detector_and_the_lab_that_has_it():
    for name, slug in questions().items():
        assert name in labs.spec(slug).detectors, f"{name}: {slug}"
    rest = README.split("What remains compares")[1].split("### The parts")[0]
    assert {*questions(), *re.findall(r"`([a-z-]+)`", rest)} == set(detect.names())


def test_who_records_what_the_table_says_gets_its_questions_answered(tmp_path):
    for rank in range(2):
        probe = Probe(tmp_path / f"rank-{rank:05d}.jsonl", rank=rank, world_size=2)
        probe.declare(dataset_size=96, workers=0, clip_norm=1.0, mtbf_s=3600.0, cores=2)
        probe.declare(matmul_params=1000, layers=1, hidden=8, seq=4, counted_flops_per_token=6000.0)
        probe.digest("initial_weights", [])
        probe.event("optimizer_knows", known=4, parameters=4, orphans=0)
        for epoch in range(2):
            for step, _ in enumerate(probe.batches(np.arange(96).reshape(12, 8)[6 * rank :][:6], epoch=epoch)):
                with probe.span("all_reduce", "comm"):
                    time.sleep(0.001)
                for name in ("updates", "scaler_steps"):
                    probe.count(name)
                probe.count("gradient_elements", 100)
                probe.count("gradient_zeros", 0)
                probe.count("updates_lost", 0)
                for name in ("loss_local", "grad_norm"):
                    probe.scalar(name, 1.0 / (step + 1))
                probe.scalar("scale", 65536.0)
                probe.scalar("version_pulled", step)
                probe.scalar("version_pushed", step + 1)
            probe.event("save", of_step=probe.step + 1, path="shared", stall_s=0.01, alone=rank == 0, digest="x")
        probe.seen("validation", 0, np.arange(1000, 1008))
        probe.close()
    restarted = tmp_path / "restarted"
    restarted.mkdir()
    for attempt, name in enumerate(("rank-00000.jsonl", "rank-00000.attempt1.jsonl")):
        probe = Probe(restarted / name, attempt=attempt)
        if attempt:
            probe.event("load", of_step=4)
            probe.event("state", when="resumed", of_step=4, weights="a hash")
            probe.resume_at(4)
        for step, _ in enumerate(probe.batches([np.arange(8)] * 6)):
            probe.count("updates")
            probe.count("gradient_elements", 100)
            probe.scalar("loss_local", 1.0 / (step + 1))
            if step == 3 and not attempt:
                probe.event("save", of_step=4, path="shared")
                probe.event("state", when="saved", of_step=4, weights="a hash")
        probe.close(finished=attempt == 1)
    records = [labkit.read_record(folder) for folder in (tmp_path, restarted)]
    answered = {verdict.detector for record in records for verdict in labkit.judge(record).shown}
    assert answered == {name for name, slug in questions().items() if slug != "overlap"}  # a DDP module: tests/ranks
