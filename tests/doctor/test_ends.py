"""The script's own end is passed through, and whatever the script is, the doctor ends too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest
import warm

from labkit.detect import is_timed
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


def test_what_is_raised_is_shown_by_the_scripts_own_frames_alone(diagnose, capfd):
    text = (
        TRAINS.format(steps=2, then="pass")
        + "try:\n    model(torch.ones(3))\nexcept RuntimeError as e:\n    raise KeyError('mine') from e"
    )
    diagnose(text, ranks=1, start=launch.start)
    said = capfd.readouterr().err
    assert "KeyError: 'mine'" in said and "direct cause" in said and 'script.py", line ' in said
    assert "labkit" not in said.replace("labkit doctor", "") and "runpy" not in said


ODD = {
    "a trace, which what is watched must not enter": "model = torch.jit.trace(model, torch.randn(8, 4))",
    "a transform of torch.func": """
        torch.func.grad(lambda w: torch.func.functional_call(model, w, (torch.randn(8, 4),)).sum())(
            {name: p.detach() for name, p in model.named_parameters()}
        )""",
    "a module that does not tell its parameters": """
        class Closed(torch.nn.Module):
            def parameters(self, recurse=True): raise RuntimeError("none of your business")
            def forward(self, x): return inner(x)
        inner, model = model, Closed()""",
    "a data set whose length is an error": """
        class Odd:
            def __len__(self): raise RuntimeError("no length")
            def __getitem__(self, at): return torch.ones(4) * at
        for batch in torch.utils.data.DataLoader(Odd(), sampler=range(4)): model(batch)""",
    "a module called by another way": "torch.nn.Module.__call__ = torch.nn.Module._call_impl",
    "functions of torch taken away": "del torch.save, torch.distributed.all_reduce",
    "a thread of its own": """
        import threading
        other = torch.nn.Linear(4, 2)
        worker = threading.Thread(target=lambda: [other(torch.ones(2, 4)) for _ in range(20)])
        worker.start()
        worker.join()""",
    "another folder": "import os, tempfile\nos.chdir(tempfile.mkdtemp())",
    "a child that ends as a script does": "import os, sys\npid = os.fork()\nif not pid: sys.exit(0)\nos.waitpid(pid, 0)",
    "a signal of its own": """
        import signal
        signal.signal(signal.SIGUSR1, lambda *_: None)
        signal.raise_signal(signal.SIGUSR1)""",
}


@pytest.mark.parametrize("odd", ODD)
def test_what_a_script_does_by_the_way_is_its_own_affair(diagnose, odd):
    before, loop, after = TRAINS.format(steps=5, then="pass").partition("for step in")
    seen = diagnose(before + textwrap.dedent(ODD[odd]) + "\n" + loop + after, ranks=1)
    assert [(one.end, one.code) for one in seen.ended.ranks] == [("finished", 0)]
    assert not seen.found


def test_a_closure_that_goes_backward_as_often_as_it_wants_drops_nothing(diagnose):
    seen = diagnose(
        """
        import torch
        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1)
        batch = torch.randn(64, 4)
        def closure():
            optimizer.zero_grad()
            loss = (model(batch) - 1).square().mean()
            loss.backward()
            return loss
        for step in range(8):
            optimizer.step(closure)
        """,
        ranks=1,
    )
    assert seen.trained and not seen.found


def test_a_collective_in_a_compiled_function_is_compiled(diagnose):
    seen = diagnose(
        """
        import torch
        import torch.distributed as dist
        dist.init_process_group("gloo")
        @torch.compile(backend="eager", fullgraph=True)
        def doubled_sum(x):
            y = x * 2
            dist.all_reduce(y)
            return y
        assert doubled_sum(torch.ones(2)).tolist() == [4.0, 4.0]
        dist.destroy_process_group()
        """,
        ranks=2,
    )
    assert [one.code for one in seen.ended.ranks] == [0, 0]


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux to end the child with its parent")
def test_ranks_end_with_a_doctor_that_is_killed(tmp_path):
    (tmp_path / "script.py").write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(100)")
    words = [sys.executable, "-m", "labkit", "doctor", "--ranks", "1", "--record", str(tmp_path / "record"), "script.py"]
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    doctor = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path})
    assert doctor.stdout is not None
    rank = psutil.Process(int(doctor.stdout.readline()))
    doctor.kill()
    doctor.wait()
    doctor.stdout.close()
    rank.wait(20)


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
    (tmp_path / "a.py").write_text("")
    for how, said in (
        ({"ranks": 0}, "--ranks must be 1 or more; given 0"),
        ({"ranks": 100_000}, "--ranks must be from 1 to 256"),
        ({"steps": 0}, "--steps must be 1 or more"),
        ({"deadline_s": 0}, "the deadline must be above 0"),
        ({"deadline_s": float("nan")}, "the deadline must be above 0"),
    ):
        with pytest.raises(UsageError, match=said):
            examine(["a.py"], **how)


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
    # on a busy machine its one worker may truly keep the rank waiting
    assert not [verdict for verdict in seen.found if not is_timed(verdict.detector)]


def test_a_process_that_is_slow_to_go_stood_nowhere(tmp_path):
    path = tmp_path / "rank-00000.jsonl"
    probe = Probe(path, rank=0, local_rank=0, world_size=1)
    probe.close()
    closed = path.read_bytes()
    stands.note(tmp_path, 0, 1, "")
    assert path.read_bytes() == closed
