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
from ...words import plural
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

ENOUGH = 12
"""Steps of each rank below which a pattern may be chance."""

QUIET = "stop what else runs there, use no more ranks than cores, and run longer"


def detect(record: Record) -> Verdict:
    """Judge the pace of the ranks of the run under study."""
    run = record.run
    if run.world_size < 2:
        return _answer("not_applicable", cause="one rank waits for nobody", fix="run with 2 ranks or more")
    of_run = pace(run)
    if of_run is None:
        return _answer(
            "not_applicable",
            cause="the program did not time its communication",
            fix='time it with probe.span("all_reduce", "comm"), or in the callback of the collective with probe.add_span',
        )
    worst = slow_ranks(of_run.own_s, times=SLOW * pressure(run), whole_s=of_run.whole_s)[0]
    evidence = _evidence(of_run, worst, record.link_source)
    if len(of_run.numbers) < ENOUGH:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"too few to tell a slow rank from chance: {plural(len(of_run.numbers), 'step')} of a rank",
            fix=f"run {ENOUGH} steps or more",
        )
    if worst.matters and not worst.by_turns:
        return _blame(of_run, worst, evidence)
    if not worst.matters and _hidden_by_load(of_run, run):
        return _answer(
            "inconclusive",
            evidence,
            cause="more threads than cores wanted to run: that alone makes some ranks slower than others, and hides who is",
            fix=QUIET,
        )
    said = "slow steps strike ranks by turns" if worst.matters else "no rank takes much longer for a step than the others"
    return _answer("clear", evidence, cause=f"{said}, outside of the communication that was timed")


def _hidden_by_load(of_run: Pace, run: Run) -> bool:
    """Whether a crowded machine hides a slow rank: by the usual measure there is one, or steps vary by as much."""
    if pressure(run) == 1:
        return False
    usual = slow_ranks(of_run.own_s, times=SLOW, whole_s=of_run.whole_s)[0]
    low, high = np.quantile(of_run.own_s, (0.1, 0.9))
    return (usual.matters and not usual.by_turns) or (is_heavy(run) and bool(high > SLOW * low))


def _blame(of_run: Pace, worst: Slow, evidence: dict[str, Quantity]) -> Verdict:
    """The verdict on a rank whose slow steps cost enough to be worth a word."""
    told = _told(of_run, worst)
    waited = of_run.waited_of_gap(worst)
    if waited < NOT_WAITED:
        return _answer("clear", evidence, cause=f"{told}, and nobody waits for it")
    if not worst.proven:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"{told}, but not in all of them, or not for long enough: what else runs on the machine could do that",
            fix=QUIET,
        )
    if waited < WAITED:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"{told}, and they spend only part of that time in communication",
            fix="stop what else runs there, and run longer",
        )
    return _answer(
        "found",
        evidence,
        cause=f"{told}, and these wait for it",
        fix="find out why it is slow (another job, heat, a worse link, more data) or take it out; give it a smaller batch; "
        "or do not wait, at a learning rate that stale gradients bear",
        waste=of_run.waiting(worst) * (of_run.own_s.shape[1] - 1) / of_run.own_s.shape[1],
    )


def _told(of_run: Pace, worst: Slow) -> str:
    """Which rank takes how long, from which step on and in how many of them."""
    begin = int(of_run.numbers[worst.begin])
    since = f", from step {begin} on," if worst.begin > 2 and worst.share > 0.9 else ""
    some = "" if worst.share > 0.9 else f" in {len(worst.steps)} of {plural(len(of_run.numbers), 'step')}"
    return f"rank {worst.rank} takes {worst.times:.2g} times as long for a step as the others{since}{some}"


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
