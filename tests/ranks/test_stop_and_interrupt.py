"""Stop and Ctrl-C end a run at any moment, for good."""

from __future__ import annotations

import signal
import threading
import time

import pytest
import rank_programs as programs

from labkit.errors import RunStopped
from labkit.ranks.launch import Control, launch
from labkit.ranks.rendezvous import OneAgentRendezvous

pytestmark = pytest.mark.ranks


def only_rank_files(folder):
    return all(path.name.startswith("rank-") for path in folder.iterdir())


def test_stop_before_the_start_starts_nothing(folder):
    control = Control()
    control.stop()
    with pytest.raises(RunStopped, match="before its ranks were started"):
        launch(programs.slow_steps, ranks=2, folder=folder, control=control)
    assert not list(folder.iterdir())


@pytest.mark.parametrize("after_s", [0.0, 0.005, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15])
def test_stop_while_the_ranks_start_lets_no_attempt_follow(folder, after_s):
    control = Control()
    timer = threading.Timer(after_s, control.stop)
    timer.start()
    started = time.monotonic()
    with pytest.raises(RunStopped, match="its ranks are ended|before its ranks"):
        launch(programs.slow_steps, ranks=3, folder=folder, control=control, max_restarts=5)
    assert time.monotonic() - started < 8  # it does not come to the patience that ends with a killed server
    assert not list(folder.glob("*attempt*.jsonl"))
    assert only_rank_files(folder)


def test_stop_in_the_middle_lets_no_attempt_follow(folder, monkeypatch):
    control, rounds = Control(), []
    join = OneAgentRendezvous.next_rendezvous

    def counted(self):
        joined = join(self)
        rounds.append(joined)
        return joined

    monkeypatch.setattr(OneAgentRendezvous, "next_rendezvous", counted)

    def stop_later(progress):
        if min(progress.steps) > 5:
            control.stop()

    with pytest.raises(RunStopped):
        launch(programs.slow_steps, ranks=2, folder=folder, control=control, max_restarts=5, on_progress=stop_later)
    assert len(rounds) == 1
    assert not list(folder.glob("*attempt*.jsonl"))
    assert only_rank_files(folder)


def test_stop_ends_ranks_that_ignore_signals(folder):
    control = Control()
    threading.Timer(0.5, control.stop).start()
    with pytest.raises(RunStopped):
        launch(programs.deaf, ranks=2, folder=folder, control=control)


INTERRUPTED = """
import signal, sys, time
from pathlib import Path
import psutil, rank_programs
from labkit.ranks import ending, forkserver
from labkit.ranks.launch import launch
from multiprocessing import resource_tracker

def slowly(board, agent, end=ending._end):
    print("ending", flush=True)
    time.sleep(0.5)
    end(board, agent)

def left():
    kept = {forkserver.server_pid(), resource_tracker._resource_tracker._pid}
    return [child for child in psutil.Process().children(recursive=True) if child.pid not in kept]

told = []
def tell(progress):
    if min(progress.steps) > 2 and not told:
        told.append(print("running", flush=True))

before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
Path("one").mkdir(), Path("two").mkdir()
ending._end, end = slowly, ending._end
try:
    launch(rank_programs.slow_steps, ranks=2, folder=Path("one"), on_progress=tell, max_restarts=3)
except KeyboardInterrupt:
    print("interrupted", flush=True)
ending._end = end
patience = time.monotonic() + 10
while left() and time.monotonic() < patience:  # a rank that was just coming up sees that it is too late, and ends itself
    time.sleep(0.05)
assert not left(), left()
assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
assert not list(Path("one").glob("*attempt*")), list(Path("one").iterdir())
assert all(path.name.startswith("rank-") for path in Path("one").iterdir()), list(Path("one").iterdir())
print(launch(rank_programs.sum_of_ranks, ranks=2, folder=Path("two")).values, flush=True)
time.sleep(60)
"""


def test_ctrl_c_ends_the_ranks_and_a_second_one_does_not_leave_them(script):
    process = script(INTERRUPTED)
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "ending\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"
    assert process.stdout.readline() == "((0, 3.0), (1, 3.0))\n", process.stderr.read()
    process.send_signal(signal.SIGINT)  # now it is the script's again
    process.wait(timeout=20)
    assert "KeyboardInterrupt" in process.stderr.read()


INTERRUPTED_WHILE_WARMING_UP = """
import os, signal, tempfile, time
from pathlib import Path
import rank_programs
from labkit.ranks import forkserver
from labkit.ranks.launch import launch

signal.signal(signal.SIGINT, signal.default_int_handler)  # what a job in the background inherits is to ignore it
forkserver.warm()
server = forkserver.server_pid()
signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
time.sleep(0.5)  # it loads torch, for seconds
os.killpg(0, signal.SIGINT)
assert launch(rank_programs.sum_of_ranks, ranks=2, folder=Path(tempfile.mkdtemp(dir="."))).values == ((0, 3.0), (1, 3.0))
assert forkserver.server_pid() == server
print("done", flush=True)
"""


def test_an_interrupt_while_the_warm_server_loads_torch_does_not_end_it(script):
    process = script(INTERRUPTED_WHILE_WARMING_UP, start_new_session=True)
    output, errors = process.communicate(timeout=60)
    assert output == "interrupted\ndone\n" and "Traceback" not in errors, errors
