"""Do epochs begin with a wait for workers?

A DataLoader without persistent workers ends them after each pass and starts new ones for the next. Each sets up again what
it needs: it is forked, opens files, builds an index. Within an epoch nothing of that shows.
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..under_load import is_heavy
from ..verdict import Verdict, answering

NAME = "worker-restarts"
QUESTION = "Does each epoch begin with a wait for new workers?"
OF_THE_DOCTOR = True
TIMED = True
_answer = answering(NAME, QUESTION)

SECONDS, TIMES, SHARE = 0.8, 10, 0.1
"""From this many seconds on, from so many steps on, and from this share of the run on, a start is worth a word."""

PLAINLY = 3.0
"""Where others take the cores, from so many seconds on."""


def detect(record: Record) -> Verdict:
    """Judge the starts of workers after the first of each loop, on the rank that waits longest."""
    run = record.run
    seconds, where = max((_starts(run, rank) for rank in range(run.world_size)), key=lambda one: sum(one[0]))
    steps = [step for log in run.ranks for step in log.steps]
    if not seconds or not steps:
        return _answer("not_applicable", "no-workers-started")
    length = (max(step.end_ns for step in steps) - min(step.start_ns for step in steps)) / 1e9
    step_s = float(np.median([(step.end_ns - step.start_ns) / 1e9 for step in steps]))
    share, usual = min(1.0, sum(seconds) / max(length, 1e-9)), float(np.median(seconds))
    evidence = {
        "starts_after_the_first": Quantity(len(seconds)),
        "first_batch_after": Quantity(usual, "s, the median"),
        "step": Quantity(step_s, "s, the median"),
        "share_of_the_run": Quantity(share),
    }
    if usual < SECONDS or usual < TIMES * step_s or share < SHARE:
        return _answer("clear", "workers-start-fast", evidence, share=share)
    if is_heavy(run) and usual < PLAINLY:
        return _answer("inconclusive", "starts-hindered", evidence, share=share)
    told = {"times": len(seconds), "seconds": usual, "step_s": step_s}
    return _answer("found", "workers-started-each-epoch", evidence, where=where or None, waste=share, **told)


def _starts(run: Run, rank: int) -> tuple[list[float], str]:
    """(seconds of each start of workers but the first, the place) of the loop that waits longest for them."""
    loops: dict[str, list[float]] = {}
    for event in run.ranks[rank].events:
        if event.name == "workers_started":
            loops.setdefault(str(event.fields["where"]), []).append(float(event.fields["seconds"]))
    return max(((seconds[1:], where) for where, seconds in loops.items()), key=lambda one: sum(one[0]), default=([], ""))
