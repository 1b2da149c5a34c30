"""Does every step hold a barrier?

A barrier waits for the slowest rank, and sends nothing. The all-reduce of the gradients waits for it anyway. Barriers are
left in loops that were timed or debugged once.
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import RankLog, Record
from ..verdict import Verdict, answering

NAME = "barriers"
QUESTION = "Does every step hold a barrier?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

ENOUGH = 8
"""Updates before anything is said."""

SHARE = 0.9
"""Of the updates that have a barrier, from which on it is one of every step."""


def detect(record: Record) -> Verdict:
    """Count the barriers of each update, on rank 0."""
    run = record.run
    steps = [step for step in run.ranks[0].steps if step.counts.get("updates")]
    if run.fact("watched_by") != "doctor" or run.world_size == 1:
        return _answer("not_applicable", "one-rank-has-no-barrier")
    if len(steps) < ENOUGH:
        return _answer("inconclusive", "too-few-updates-for-barriers", updates=len(steps))
    held = sum(bool(step.counts.get("barriers")) for step in steps)
    times = sum(step.counts.get("barriers", 0) for step in steps) / len(steps)
    evidence = {"barriers": Quantity(times, "an update"), "updates": Quantity(len(steps))}
    if held < SHARE * len(steps):
        return _answer("clear", "no-barrier-in-every-step", evidence)
    waste = float(np.median([_share(log) for log in run.ranks]))
    where = next((str(e.fields["where"]) for e in run.ranks[0].events if e.name == "barrier_in_step"), "") or None
    return _answer("found", "barrier-in-every-step", evidence, where=where, waste=waste, times=times)


def _share(log: RankLog) -> float:
    """Of the time in steps, that a rank is in barriers."""
    whole = sum(step.end_ns - step.start_ns for step in log.steps)
    inside = sum(span.end_ns - span.start_ns for step in log.steps for span in step.spans if span.name == "barrier")
    return inside / whole if whole else 0.0
