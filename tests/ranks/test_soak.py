"""Rare failures show in numbers: many launches in a row, none hung, nothing left, no growth."""

from __future__ import annotations

import gc
import shutil
import statistics
import time

import psutil
import pytest
import rank_programs as programs
from rank_helpers import ours

from labkit.ranks.launch import launch

RANKS = 4
DEADLINE_S = 30.0
"""For each launch: one that hung is a RankTimeout, which fails the test and says where each rank stood."""


def launch_in_a_row(number: int, tmp_path, capsys) -> None:
    times, descriptors = [], 0
    for i in range(number):
        folder = tmp_path / "run"
        folder.mkdir()
        # every other program uses a collective and leaves a DDP object to be released
        program = (programs.empty, programs.trains)[i % 2]
        started = time.perf_counter()
        launched = launch(program, ranks=RANKS, folder=folder, deadline_s=DEADLINE_S)
        times.append(time.perf_counter() - started)
        assert len(set(launched.values)) == 1
        assert sorted(path.name for path in folder.iterdir()) == [f"rank-0000{rank}.jsonl" for rank in range(RANKS)]
        shutil.rmtree(folder)
        if i == 10:
            gc.collect()
            descriptors = psutil.Process().num_fds()
    assert not ours()
    gc.collect()
    assert psutil.Process().num_fds() <= descriptors
    times.sort()
    with capsys.disabled():
        print(
            f"\n{number} launches of {RANKS} ranks in a row, none hung: median {statistics.median(times):.3f} s, "
            f"p99 {times[int(len(times) * 0.99)]:.3f} s, max {times[-1]:.3f} s"
        )


@pytest.mark.ranks
def test_twenty_launches_in_a_row(tmp_path, capsys):
    launch_in_a_row(20, tmp_path, capsys)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_thousand_launches_in_a_row(tmp_path, capsys):
    launch_in_a_row(1000, tmp_path, capsys)
