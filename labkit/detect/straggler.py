"""Is one rank slower than the others, and do they wait for it?

A collective makes every rank as slow as the slowest, so whole steps hide the culprit. What a rank does outside of
communication tells: the slow one computes longest and waits least. Judged only where one rank stands out in nearly all of
its steps; noise strikes ranks in turn.
"""

from __future__ import annotations

import numpy as np

from ..record.measures import Quantity
from ..record.measures_staleness import Pace, pace
from ..record.schema import Record, Source
from ..words import plural
from .verdict import Verdict, answering

NAME = "straggler"
QUESTION = "Do ranks wait for a slow one?"
_answer = answering(NAME, QUESTION)

SLOW = 1.5
"""Times the others' usual step from which a rank is called slow."""

NEARLY_ALL = 0.9
"""Share of the slow rank's steps that must be longer than nine of ten steps of the others."""

WAITED, NOT_WAITED = 0.5, 0.25
"""Shares of what the slow rank computes longer: who waits for so much of it waits for it, who for so little does not."""

ENOUGH = 8
"""Steps of each rank below which a pattern may be chance."""


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
    evidence = _evidence(of_run, record.link_source)
    fewest = min(len(own) for own in of_run.own_s)
    if fewest < ENOUGH:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"too few to tell a slow rank from chance: {plural(fewest, 'step')} of a rank",
            fix=f"run {ENOUGH} steps or more",
        )
    if of_run.times_as_slow < SLOW:
        return _answer("clear", evidence, cause="no rank takes much longer for a step than the others")
    if _stands_out(of_run) < NEARLY_ALL:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"rank {of_run.slowest} takes {of_run.times_as_slow:.2g} times as long as the others, but not in all "
            "steps: what else runs on the machine could do that",
            fix="stop what else runs there, use no more ranks than cores, and run longer",
        )
    if of_run.waited_of_gap < NOT_WAITED:
        return _answer(
            "clear",
            evidence,
            cause=f"rank {of_run.slowest} takes {of_run.times_as_slow:.2g} times as long for a step as the others, and "
            "nobody waits for it",
        )
    if of_run.waited_of_gap < WAITED:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"rank {of_run.slowest} takes {of_run.times_as_slow:.2g} times as long for a step as the others, which "
            "spend only part of that time in communication",
            fix="stop what else runs there, and run longer",
        )
    return _answer(
        "found",
        evidence,
        cause=f"rank {of_run.slowest} takes {of_run.times_as_slow:.2g} times as long for a step as the others, which "
        "wait for it",
        fix="find out why it is slow (another job, heat, a worse link, more data) or take it out; give it a smaller batch; "
        "or do not wait, at a learning rate that stale gradients bear",
        waste=min(1.0, of_run.waiting) * (run.world_size - 1) / run.world_size,
    )


def _stands_out(of_run: Pace) -> float:
    """Share of the slow rank's steps that are longer than nine of ten steps of all others."""
    others = np.concatenate([own for rank, own in enumerate(of_run.own_s) if rank != of_run.slowest])
    return float((of_run.own_s[of_run.slowest] > np.quantile(others, 0.9)).mean())


def _evidence(of_run: Pace, source: Source | None) -> dict[str, Quantity]:
    return {
        "slowest_rank": Quantity(of_run.slowest),
        "its_time": Quantity(of_run.times_as_slow, "x the others'"),
        "stands_out_in": Quantity(_stands_out(of_run), "of its steps"),
        "others_wait_for_it": Quantity(of_run.waiting, "of their time", source),
        "waited_of_gap": Quantity(of_run.waited_of_gap, "of what it computes longer"),
    }
