"""Is one rank slower than the others, and do they wait for it?

A collective makes every rank as slow as the slowest, so whole steps hide the culprit. What a rank does outside of
communication tells: the slow one computes longest and waits least. Each step is judged: a rank may be slow in all of them,
from some step on, or now and then. It is blamed for what noise that strikes ranks at random would hardly do
(detect/spread.py).
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Run, Source
from ..catalogue import Said, said
from ..spread import Slow, slow_ranks
from ..under_load import is_heavy, pressure
from ..verdict import Verdict, answering
from .measures import Pace, pace

NAME = "straggler"
QUESTION = "Do ranks wait for a slow one?"
TIMED = True
_answer = answering(NAME, QUESTION)

SLOW = 1.5
"""Times what the others take, from which on a step is slow; more, where there is more than one thread to a core."""

WAITED, NOT_WAITED = 0.5, 0.25
"""Shares of what the slow rank computes longer: who waits for so much of it waits for it, who for so little does not."""

UNDER_LOAD = 4.0
"""As many times as SLOW a rank must take where others take much of the cores: it may share its core with several of them."""

ENOUGH = 12
"""Steps of each rank below which a pattern may be chance."""


def detect(record: Record) -> Verdict:
    """Judge the pace of the ranks of the run under study."""
    run = record.run
    if run.world_size < 2:
        return _answer("not_applicable", "one-rank-waits-for-nobody")
    of_run = pace(run)
    if of_run is None:
        return _answer("not_applicable", "communication-not-timed")
    worst = slow_ranks(of_run.own_s, times=SLOW * pressure(run), whole_s=of_run.whole_s)[0]
    evidence = _evidence(of_run, worst, record.link_source)
    if len(of_run.numbers) < ENOUGH:
        return _answer("inconclusive", "too-few-steps-of-a-rank", evidence, steps=len(of_run.numbers), enough=ENOUGH)
    if worst.matters and not worst.by_turns:
        if is_heavy(run) and worst.times < UNDER_LOAD * SLOW * pressure(run):
            return _answer("inconclusive", "threads-outnumber-cores-and-hide-who-is-slow", evidence)
        return _blame(of_run, worst, evidence)
    if not worst.matters and _hidden_by_load(of_run, run):
        return _answer("inconclusive", "threads-outnumber-cores-and-hide-who-is-slow", evidence)
    return _answer("clear", "slow-steps-strike-by-turns" if worst.matters else "no-rank-is-slow", evidence)


def _hidden_by_load(of_run: Pace, run: Run) -> bool:
    """Whether a crowded machine hides a slow rank: by the usual measure there is one, or steps vary by as much."""
    if pressure(run) == 1:
        return False
    usual = slow_ranks(of_run.own_s, times=SLOW, whole_s=of_run.whole_s)[0]
    low, high = np.quantile(of_run.own_s, (0.1, 0.9))
    return (usual.matters and not usual.by_turns) or (is_heavy(run) and bool(high > SLOW * low))


def _blame(of_run: Pace, worst: Slow, evidence: dict[str, Quantity]) -> Verdict:
    """The verdict on a rank whose slow steps cost enough to be worth a word."""
    told, waited = _told(of_run, worst), of_run.waited_of_gap(worst)
    if waited < NOT_WAITED:
        return _answer("clear", "slow-rank-and-nobody-waits", evidence, told=told)
    if not worst.proven:
        return _answer("inconclusive", "rank-slow-perhaps-by-chance", evidence, told=told)
    if waited < WAITED:
        return _answer("inconclusive", "slow-rank-is-waited-for-in-part", evidence, told=told)
    ranks = of_run.own_s.shape[1]
    waste = of_run.waiting(worst) * (ranks - 1) / ranks
    return _answer("found", "others-wait-for-a-slow-rank", evidence, waste=waste, told=told)


def _told(of_run: Pace, worst: Slow) -> Said:
    """Which rank takes how long, from which step on or in how many of them."""
    rank, times = worst.rank, worst.times
    if worst.share <= 0.9:
        slow, steps = len(worst.steps), len(of_run.numbers)
        return said("takes-longer-in-some-steps", rank=rank, times=times, slow=slow, steps=steps)
    if worst.begin > 2:
        return said("takes-longer-from-a-step-on", rank=rank, times=times, begin=int(of_run.numbers[worst.begin]))
    return said("takes-longer", rank=rank, times=times)


def _evidence(of_run: Pace, worst: Slow, source: Source | None) -> dict[str, Quantity]:
    if not len(worst.steps):
        return {"slow_steps": Quantity(0, f"of {len(of_run.numbers)}")}
    return {
        "slowest_rank": Quantity(worst.rank),
        "its_time": Quantity(worst.times, "x the others', in its slow steps"),
        "slow_from_step": Quantity(int(of_run.numbers[worst.begin])),
        "slow_steps": Quantity(len(worst.steps), f"of {len(of_run.numbers)}"),
        "others_wait_for_it": Quantity(of_run.waiting(worst), "of their time", source),
        "waited_of_gap": Quantity(of_run.waited_of_gap(worst), "of what it computes longer"),
    }
