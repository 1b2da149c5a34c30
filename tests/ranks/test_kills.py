"""Whatever is killed: what depended on it ends, and a named error says so."""

from __future__ import annotations

import gc
import json
import os
import signal
import threading
import warnings
from multiprocessing import resource_tracker

import psutil
import pytest
import rank_programs as programs
from rank_helpers import ours, wait_until

from labkit.errors import LaunchError, RankFailed
from labkit.ranks import forkserver
from labkit.ranks.board import started_ticks
from labkit.ranks.launch import launch

pytestmark = pytest.mark.ranks

LAUNCHES = """
import json, time
from pathlib import Path
import psutil, rank_programs
from labkit.ranks.launch import launch

told = []
def tell(progress):
    if min(progress.steps) > 2 and not told:
        processes = psutil.Process().children(recursive=True)
        told.append(print(json.dumps([p.pid for p in processes]), flush=True))

Path("run").mkdir()
launch(rank_programs.loads_data, ranks=2, folder=Path("run"), on_progress=tell)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_when_the_launching_process_is_killed_all_that_it_started_goes(script, number):
    process = script(LAUNCHES)
    pids = json.loads(process.stdout.readline())
    assert len(pids) == 6  # the forkserver, the resource tracker, two ranks, a worker each
    process.send_signal(number)
    assert process.wait(timeout=10) == -number
    wait_until(lambda: not any(started_ticks(pid) for pid in pids), what=f"end of {pids}")


def while_running(folder, action, steps=3):
    """Call `action` in a thread once each rank has done a few steps."""

    def act():
        wait_until(lambda: _lines(folder) >= steps)
        action()

    thread = threading.Thread(target=act)
    thread.start()
    return thread


def _lines(folder):
    files = list(folder.glob("rank-*.jsonl"))
    return min((path.read_bytes().count(b"\n") for path in files), default=0) if len(files) == 2 else 0


def test_when_the_warm_server_is_killed_no_rank_stays_and_the_next_launch_works(folder, tmp_path):
    killer = while_running(folder, lambda: os.kill(forkserver.server_pid(), signal.SIGKILL))
    with pytest.raises(LaunchError, match="the warm server that ranks are started from was killed"):
        launch(programs.slow_steps, ranks=2, folder=folder, deadline_s=60)
    killer.join()
    wait_until(lambda: not ours(), what=f"end of {ours()}")
    (tmp_path / "next").mkdir()
    assert launch(programs.sum_of_ranks, ranks=2, folder=tmp_path / "next").values == ((0, 3.0), (1, 3.0))


def test_when_the_resource_tracker_is_killed_the_run_goes_on(folder, tmp_path):
    gc.collect()  # semaphores of earlier launches would be unknown to the next tracker, which then says so
    tracker = resource_tracker._resource_tracker._pid
    killer = while_running(folder, lambda: os.kill(tracker, signal.SIGKILL))
    with warnings.catch_warnings():
        # the standard library says so, and starts another
        warnings.filterwarnings("ignore", message="resource_tracker: process died unexpectedly")
        assert launch(programs.steps, 300, ranks=2, folder=folder).values[0] == (0, 598.0)
        killer.join()
        (tmp_path / "next").mkdir()
        assert launch(programs.sum_of_ranks, ranks=2, folder=tmp_path / "next").values == ((0, 3.0), (1, 3.0))
    assert resource_tracker._resource_tracker._pid != tracker


def test_when_a_dataloader_worker_is_killed_its_rank_says_so(folder):
    def kill_one_worker():
        ranks = psutil.Process(forkserver.server_pid()).children()
        worker = next(child for rank in ranks for child in rank.children())
        worker.kill()

    killer = while_running(folder, kill_one_worker)
    # torch says that the worker was killed, or what it met first when it read from it
    with pytest.raises(RankFailed, match=r"rank [01] failed: (RuntimeError: DataLoader worker|Connection|EOF|OS)\w*"):
        launch(programs.loads_data, ranks=2, folder=folder, deadline_s=60)
    killer.join()


def test_when_a_rank_is_killed_from_outside_its_rank_and_signal_are_named(folder):
    def kill_a_rank():
        psutil.Process(forkserver.server_pid()).children()[0].kill()

    killer = while_running(folder, kill_a_rank)
    with pytest.raises(RankFailed, match=r"rank [01] (killed: by SIGKILL|vanished)"):
        launch(programs.slow_steps, ranks=2, folder=folder, deadline_s=60)
    killer.join()
