"""What the README says is so: its tables, its targets, its pictures. Its commands are run in tests/cli."""

import re
import time

import numpy as np
import symptoms
from readme import PAGES, README, ROOT, commands

import labkit
from labkit import detect, labs
from labkit.record.probe import Probe


def questions() -> dict[str, str]:
    """From the table of what to record: by detector, the lab that its row sends to."""
    table = PAGES["your-own-script"].split("| To ask | record | `--lab` |")[1].split("\n\n")[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines()[2:]]
    return {name: lab.strip("` ") for asked, _, lab in rows for name in re.findall(r"`([a-z-]+)`", asked.split("? (")[1])}


def test_every_make_target_of_the_readme_exists():
    makefile = (ROOT / "Makefile").read_text()
    named = {command.split()[1] for command in commands() if command.startswith("make ")}
    assert named >= {"lab", "test"}
    for target in named:
        assert re.search(rf"(?m)^{target}:", makefile), target


def test_the_symptom_tables_are_made_from_what_each_lab_says_of_itself():
    assert symptoms.with_table(README) == README, "run python scripts/symptoms.py"
    assert symptoms.with_table(README.replace("every rank reads the same data", "x")) == README


def test_the_symptom_tables_send_to_every_lab_and_to_variants_that_exist():
    rows = [
        line.split("|")[-2]
        for line in README.splitlines()
        if line.startswith("| ") and not line.startswith("| What you see")
    ]
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


def test_the_exit_codes_of_the_page_are_those_of_the_command_line():
    from labkit import cli

    line = next(line for line in PAGES["command-line"].splitlines() if line.startswith("Exit codes"))
    assert f"{cli.EXIT_FAILED_CHECK} a `--fail-on`" in line
    assert f"{cli.EXIT_WRONG_USE} wrong use" in line
    assert f"{cli.EXIT_PROGRAM_FAILED} the program" in line
    assert f"{cli.EXIT_AT_DEADLINE} the doctor ended it" in line


def test_the_table_of_what_to_record_names_every_detector_and_the_lab_that_has_it():
    for name, slug in questions().items():
        assert name in labs.spec(slug).detectors, f"{name}: {slug}"
    page = PAGES["your-own-script"]
    rest = page.split("What remains compares")[1] + page.split("from outside alone:")[1].split("The doctor is new")[0]
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
