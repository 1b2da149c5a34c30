"""The commands, the example and the script of the README are run."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from command_line import labkit
from readme import PAGES, README, ROOT, commands, own_script

import labkit as labkit_of_python
from labkit.facade import Lab

SLOW = ("make ", "conda ")
QUICK = {
    "start-here": {"budget_s": 0.3, "storage_mib": 2, "copy_mib": 8, "launches": 1},
    "duplicate-data": {"num_samples": 301},
}
"""Settings with which the commands do in seconds what they do with a lab's own."""


def run(command: str, folder: Path) -> subprocess.CompletedProcess:
    """Run a command of the README as a new user has it; `torchrun` in a process, `labkit` in this one."""
    tool, *words = shlex.split(command)
    assert tool in (".venv/bin/labkit", ".venv/bin/torchrun")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LABKIT_CACHE": str(folder), "PYTHONPATH": str(ROOT)}
    if tool.endswith("labkit"):
        with mock.patch.dict(os.environ, env):
            return labkit(*words, cwd=folder)
    words = ["-m", "torch.distributed.run", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", *words]
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, env=env, cwd=folder)


def of_the_script() -> list[str]:
    """The commands that start the README's script and judge what it leaves."""
    return [word for word in commands() if ("my_script.py" in word or "my_run" in word) and " doctor " not in word]


@pytest.fixture(scope="module")
def script_has_run(tmp_path_factory):
    """A folder in which the README's script was started as the README says, once."""
    folder = tmp_path_factory.mktemp("script")
    (folder / "my_script.py").write_text(own_script())
    done = run(of_the_script()[0], folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture
def small_runs(monkeypatch):
    real = Lab.run
    monkeypatch.setattr(Lab, "run", lambda self, *words, **how: real(self, *words, **QUICK[self.spec.slug] | how))


@pytest.mark.ranks
@pytest.mark.timeout(600)
def test_every_labkit_command_of_the_readme_runs(tmp_path, script_has_run, small_runs):
    found = [command for command in commands() if not command.startswith(SLOW) and command != of_the_script()[0]]
    assert len(found) >= 7
    shutil.copytree(script_has_run / "my_run", tmp_path / "my_run")
    shutil.copy(script_has_run / "my_script.py", tmp_path)
    for command in found:
        done = run(command, tmp_path)
        expected = 1 if "--fail-on found" in command else 0
        assert done.returncode == expected, f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.mark.ranks
def test_the_example_of_the_readme_finds_the_duplicate_data(tmp_path):
    example = re.search(r"## Five lines\n\n```python\n(.*?)```", README, re.DOTALL)
    assert example
    script = tmp_path / "example.py"
    script.write_text(example[1])
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LABKIT_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=env, check=True)
    assert "FOUND  rank-duplicates" in done.stdout


@pytest.mark.ranks
def test_the_script_of_the_readme_is_judged_and_its_fault_found(script_has_run):
    assert 20 <= len([line for line in own_script().splitlines() if line]) <= 30
    assert "The probe takes seven of its lines" in PAGES["your-own-script"]
    assert len(re.findall(r"(?m)^.*(?:[Pp]robe|my_run).*$", own_script())) == 7
    _, judged, *_ = of_the_script()
    done = run(judged + " --json -", script_has_run)
    report = json.loads(done.stdout)
    assert report["provenance"]["world_size"] == 2 and report["variant"] == "my_run"
    statuses = {verdict["detector"]: verdict["status"] for verdict in report["verdicts"]}
    assert statuses["rank-duplicates"] == "found" and report["verdicts"][0]["detector"] == "rank-duplicates"
    assert statuses["non-finite"] == "clear" and statuses["coverage"] == "clear"
    done = run(judged + " --figures drawn", script_has_run)
    assert {"who-read-what.png", "coverage.png", "timeline.png", "loss.png"} <= {
        p.name for p in (script_has_run / "drawn").iterdir()
    }
    assert "your script: my_run" in done.stdout and "FOUND" in done.stdout


def test_the_five_lines_with_a_probe_record_what_is_judged(tmp_path, monkeypatch):
    lines = re.search(r"Or with a probe in it.*?```python\n(.*?)```", README, re.DOTALL)
    assert lines
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_run").mkdir()
    samples = np.arange(64).reshape(8, 8)
    for rank in range(2):
        names = {"rank": rank, "world_size": 2, "epoch": 0, "loader": list(zip(samples, samples, strict=True))}
        exec(lines[1], names | {"train_step": lambda inputs, targets: np.float32(1)})
    verdicts = {verdict.detector: verdict.status for verdict in labkit_of_python.read("my_run").verdicts}
    assert verdicts["rank-duplicates"] == "found" and verdicts["non-finite"] != "not_applicable"
