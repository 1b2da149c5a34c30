"""A hang is data: at the deadline every rank is asked where it stands, then it is ended."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest
import rank_programs as programs
from rank_helpers import ours, wait_until

from labkit.errors import RankTimeout
from labkit.ranks.launch import launch
from labkit.ranks.progress import Progress

pytestmark = pytest.mark.ranks


def hang(program, folder, ranks=3, deadline_s=1.5, **options) -> RankTimeout:
    with pytest.raises(RankTimeout) as caught:
        launch(program, ranks=ranks, folder=folder, deadline_s=deadline_s, **options)
    return caught.value


def test_a_deadlock_names_for_each_rank_the_function_and_the_line(folder):
    error = hang(programs.one_sleeps, folder, deadline_s=2.0)
    assert str(error).startswith("3 of 3 ranks had not finished after 2 s:")
    assert error.ranks[1].message == "in one_sleeps, step 0"
    assert error.ranks[1].where is not None and error.ranks[1].where.endswith(programs.line_of("sleeps"))
    for rank in (0, 2):
        assert error.ranks[rank].state == "waiting"
        assert error.ranks[rank].message == "in all_reduce, step 0"
        assert error.ranks[rank].where is not None
        assert error.ranks[rank].where.endswith(programs.line_of("the others wait for it"))
        assert "all_reduce" in error.ranks[rank].text


def test_a_rank_that_is_stuck_in_c_code_is_named_too(folder):
    error = hang(programs.stuck_in_c, folder, ranks=2)
    assert error.ranks[1].where is not None and error.ranks[1].where.endswith(programs.line_of("backtracks for ages"))
    assert error.ranks[1].message == "in match, step 0"
    assert error.ranks[0].message == "in barrier, step 0"


def test_ranks_that_are_deaf_to_every_signal_are_ended_all_the_same(folder):
    error = hang(programs.deaf, folder, ranks=2)
    assert all(report.message == "in step 0; its stack could not be taken" for report in error.ranks.values())


def test_a_rank_that_was_suspended_is_ended_too(folder):
    """One that cannot answer at all; the other shows where it waits."""
    pids: list[int] = []

    def suspend():
        wait_until(lambda: len(list(folder.glob("rank-*.jsonl"))) == 2)
        pids.extend(_pids_of_ranks())
        os.kill(pids[1], signal.SIGSTOP)

    thread = threading.Thread(target=suspend)
    thread.start()
    error = hang(programs.slow_steps, folder, ranks=2)
    thread.join()
    assert error.ranks[1].message.endswith("its stack could not be taken")
    assert error.ranks[0].message.startswith("in all_reduce")


def _pids_of_ranks() -> list[int]:
    return sorted(ours())


def test_the_steps_that_were_done_are_told(folder):
    seen: list[Progress] = []
    started = time.monotonic()
    error = hang(programs.slow_steps, folder, ranks=2, on_progress=seen.append)
    assert time.monotonic() - started < 20
    assert max(seen[-1].steps) > 3
    assert all(not report.message.endswith("step 0") for report in error.ranks.values())


def test_a_deadline_that_passes_before_the_ranks_are_up(folder):
    error = hang(programs.empty, folder, ranks=4, deadline_s=0.001)
    assert "of 4 ranks had not finished" in str(error)
    assert all(path.name.startswith("rank-") for path in folder.iterdir())
