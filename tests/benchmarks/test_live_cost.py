"""What it costs the ranks that somebody watches: the same run followed and not followed, in turns, on busy cores."""

from __future__ import annotations

import statistics
import threading
import time
from pathlib import Path

import pytest

from labkit.ranks.launch import launch
from labkit.record.follow import Follower
from labkit.view.live.following import LOOK_S

pytestmark = [pytest.mark.benchmark, pytest.mark.ranks, pytest.mark.timeout(900)]

RANKS, STEPS, ROUNDS = 8, 400, 7


def steps(context) -> None:
    """Plain work of a few milliseconds a step, written down as labs do."""
    import torch

    torch.set_num_threads(1)
    left, probe = torch.randn(256, 256), context.probe
    context.expect_steps(context.task)
    for _ in range(context.task):
        probe.begin_step()
        for name in ("forward", "backward", "optimizer"):
            with probe.span(name):
                for _ in range(4):
                    left @ left
        probe.samples("train", left)
        probe.scalar("loss_local", 0.5)
        probe.end_step()


def one_run(folder: Path, follow: bool) -> tuple[float, float]:
    """(median step of all ranks in ms, CPU seconds of the thread that follows)."""
    folder.mkdir()
    over, spent = threading.Event(), [0.0]

    def looking() -> None:
        follower = Follower(folder, RANKS)
        while not over.wait(LOOK_S):
            follower.look()
        spent[0] = time.thread_time()
        follower.close()

    thread = threading.Thread(target=looking)
    if follow:
        thread.start()
    launch(steps, STEPS, ranks=RANKS, folder=folder, group=False, threads=1)
    over.set()
    if follow:
        thread.join()
    follower = Follower(folder, RANKS)
    taken: list[float] = []
    for tail in follower._tails:
        taken += [(line.end_ns - line.start_ns) / 1e6 for line in tail.read(2**30) if hasattr(line, "end_ns")]
    assert len(taken) == RANKS * STEPS
    return statistics.median(taken), spent[0]


def test_following_a_run_beside_not_following_it(tmp_path, capsys):
    more: dict[str, list[float]] = {"followed": [], "not followed, again": []}
    spent = []
    for number in range(ROUNDS):
        control, _ = one_run(tmp_path / f"{number}-control", follow=False)
        again, _ = one_run(tmp_path / f"{number}-again", follow=False)
        followed, cpu = one_run(tmp_path / f"{number}-followed", follow=True)
        more["followed"].append(followed / control - 1)
        more["not followed, again"].append(again / control - 1)
        spent.append(cpu)
    with capsys.disabled():
        print(f"\n{RANKS} ranks, {STEPS} steps each, {ROUNDS} rounds: the median step beside that of an equal run before it")
        for name, shares in more.items():
            print(f"  {name:<20} {statistics.median(shares):+.2%}, from {min(shares):+.2%} to {max(shares):+.2%}")
        print(f"  the thread that follows uses {statistics.median(spent):.3f} s of a core in a run")
    assert statistics.median(more["followed"]) < 0.5
