"""The script's own end is passed through, and whatever the script is, the doctor ends too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import warm

from labkit.doctor import launch, stands
from labkit.doctor.diagnosis import examine
from labkit.errors import UsageError
from labkit.record.probe import Probe

SCRIPTS = Path(__file__).parent / "scripts"
pytestmark = [pytest.mark.ranks, pytest.mark.timeout(180)]

TRAINS = """
import torch
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range({steps}):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
    {then}
"""


@pytest.fixture
def diagnose(tmp_path, monkeypatch):
    """Examine a script that is given as text."""
    monkeypatch.chdir(tmp_path)

    def of(text: str, *arguments: str, **how):
        Path("script.py").write_text(textwrap.dedent(text))
        how = {"start": warm.start, "record": tmp_path / "record", "deadline_s": 90, **how}
        return examine(["script.py", *arguments], **how)

    return of


def test_a_script_that_raises_ends_with_its_own_traceback_and_code(diagnose, capfd):
    text = TRAINS.format(steps=5, then="if step == 3: raise RuntimeError('mine')")
    seen = diagnose(text, ranks=1, start=launch.start)  # whose output is this process's
    assert [(one.end, one.code) for one in seen.ended.ranks] == [("raised RuntimeError", 1)]
    assert "RuntimeError: mine" in capfd.readouterr().err
    assert seen.ended.code == 1 and seen.trained


@pytest.mark.parametrize(("left", "code"), [("3", 3), ("0", 0), ("'a word'", 1), ("None", 0)])
def test_a_script_that_exits_keeps_its_code(diagnose, left, code):
    seen = diagnose(f"import sys\nsys.exit({left})", ranks=1)
    assert seen.ended.code == code and not seen.trained


def test_a_script_that_is_killed_is_said_to_be(diagnose):
    seen = diagnose(TRAINS.format(steps=5, then="import os; step == 3 and os.kill(os.getpid(), 9)"), ranks=1)
    assert [(one.end, one.code) for one in seen.ended.ranks] == [("killed", -signal.SIGKILL)]
    assert seen.trained and seen.ended.code != 0


def test_steps_end_a_long_run_at_once_and_in_order(diagnose):
    seen = diagnose(TRAINS.format(steps=10**9, then="pass"), ranks=1, steps=7)
    assert [(one.end, one.code) for one in seen.ended.ranks] == [("enough", 0)]
    assert sum(step.counts["updates"] for step in seen.reading.run.ranks[0].steps) == 7


def test_what_is_no_training_is_said_to_be_none(diagnose):
    seen = diagnose("print('hello')", ranks=1)
    assert not seen.trained and not seen.found and seen.ended.code == 0


def test_a_rank_that_hangs_before_its_first_step_is_said_to(diagnose):
    seen = diagnose(
        """
        import torch.distributed as dist
        dist.init_process_group("gloo")
        if dist.get_rank() == 0:
            dist.barrier()
        else:
            import time
            time.sleep(1000)
        """,
        ranks=2,
        still_s=1.5,
    )
    assert seen.ended.stood_still
    hang = seen.verdicts["stands-still"]
    assert (hang.reason, hang.where) == ("ranks-never-came", "script.py:8")


def test_arguments_relative_imports_and_the_working_folder_are_the_scripts(diagnose, tmp_path):
    (tmp_path / "beside.py").write_text("VALUE = 7")
    text = """
        import argparse, os, sys
        from beside import VALUE
        parser = argparse.ArgumentParser()
        parser.add_argument("--lr", type=float)
        assert parser.parse_args().lr == 0.5 and VALUE == 7 and __name__ == "__main__"
        assert os.path.basename(sys.argv[0]) == "script.py" and os.path.exists("beside.py")
    """
    assert diagnose(text, "--lr", "0.5", ranks=1).ended.code == 0


def test_a_module_runs_as_python_m_runs_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "part.py").write_text("VALUE = 1")
    (tmp_path / "package" / "train.py").write_text(
        "from .part import VALUE\nassert __name__ == '__main__'\nraise SystemExit(4)"
    )
    seen = examine(["package.train"], is_module=True, ranks=1, record=tmp_path / "r", start=warm.start)
    assert seen.ended.code == 4


def test_what_is_no_script_is_refused_with_what_to_give(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="no file 'nowhere.py'"):
        examine(["nowhere.py"], ranks=1)
    with pytest.raises(UsageError, match="--ranks must be 1 or more; given 0"):
        (tmp_path / "a.py").write_text("")
        examine(["a.py"], ranks=0)


@pytest.mark.parametrize("ranks", [1, 2])
def test_losses_and_random_numbers_are_equal_to_the_bit_with_and_without(tmp_path, capfd, monkeypatch, ranks):
    """The real way, new interpreters: torchrun's variables alone in the one, the doctor in the other."""
    monkeypatch.chdir(SCRIPTS)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    alone = ["--alone"] if ranks == 1 else []
    launcher = [] if ranks == 1 else ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    plain = subprocess.run(
        [sys.executable, *launcher, "losses.py", *alone], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    capfd.readouterr()
    seen = examine(["losses.py", *alone], ranks=ranks, record=tmp_path / "record")
    printed = capfd.readouterr().out
    assert seen.ended.code == 0 and seen.trained
    assert printed.splitlines() == plain.stdout.splitlines() and len(printed.splitlines()) > 10
    assert not seen.found


def test_a_process_that_is_slow_to_go_stood_nowhere(tmp_path):
    path = tmp_path / "rank-00000.jsonl"
    probe = Probe(path, rank=0, local_rank=0, world_size=1)
    probe.close()
    closed = path.read_bytes()
    stands.note(tmp_path, 0, 1, "")
    assert path.read_bytes() == closed
