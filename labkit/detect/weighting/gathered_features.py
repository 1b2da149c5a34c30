"""Do gradients flow through features that are gathered from all ranks?

torch.distributed.all_gather gives copies without a gradient. A loss over the features of all ranks, such as a contrastive
one, then lacks a part of its gradient; the loss falls all the same.
"""

from __future__ import annotations

import math

from ...record.quantity import Quantity
from ...record.schema import Event, Record, Run
from ..verdict import Verdict, answering
from .measures import windows

NAME = "gathered-features"
QUESTION = "Do gradients flow through features that are gathered from all ranks?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

ENOUGH = 2
"""Backward passes that must say the same."""


def detect(record: Record) -> Verdict:
    """Judge the gathers of features that came before backward passes."""
    run = record.run
    of_ranks = [[event for event in log.events if event.name == "gathered"] for log in run.ranks]
    if not any(of_ranks):
        return _answer("not_applicable", "nothing-gathered-for-a-gradient")
    used = [event for events in of_ranks for event in events if event.fields["used"]]
    evidence = {"gathers": Quantity(sum(map(len, of_ranks)), "looked at"), "used": Quantity(len(used), "in the loss")}
    if not used:
        return _answer("inconclusive", "gathered-and-not-seen-in-the-loss", evidence)
    if len(used) < ENOUGH * len(of_ranks):
        return _answer("inconclusive", "gathered-too-seldom", evidence, times=len(used))
    where = str(used[0].fields["where"]) or None
    if not any(event.fields["own_back"] for event in used):
        return _answer("found", "gathered-without-gradient", evidence, where=where)
    ranks = int(used[0].fields["ranks"])
    if not _one_loss(of_ranks):
        return _answer("inconclusive", "own-features-alone-have-a-gradient", evidence, where=where)
    if _multiplied(run, ranks):
        return _answer("clear", "own-features-times-the-ranks", evidence)
    return _answer("found", "own-features-alone-of-one-loss", evidence, where=where, ranks=ranks)


def _one_loss(of_ranks: list[list[Event]]) -> bool:
    """Whether all ranks compute the same loss, of all features."""
    losses = [[float(event.fields["loss"]) for event in events] for events in of_ranks]
    rows = list(zip(*losses, strict=False))
    return bool(rows) and all(math.isclose(one, row[0], rel_tol=1e-3, abs_tol=1e-6) for row in rows for one in row)


def _multiplied(run: Run, ranks: int) -> bool:
    """Whether the loss is multiplied by the number of ranks, or its form is not known."""
    parts = [part for window in windows(run.ranks[0]) for part in window.parts]
    return not parts or not all(part.kind and part.share < 0.75 * ranks for part in parts)
