"""Does the gradient scaler skip more steps than its search for a scale explains?

A dynamic scale is meant to overflow now and then: it doubles until a gradient overflows, skips that step and halves. So
skips while the scale first comes down, and one for each doubling, are how it works. Others are steps lost.
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record
from ..verdict import Verdict, answering
from .measures import Scaling, scaling

NAME = "skipped-steps"
QUESTION = "Does the scaler skip more steps than its search explains?"
_answer = answering(NAME, QUESTION)

RARE, MANY = 0.02, 0.10
"""Shares of unexplained skips: below the first nothing is said, above the second it is found."""

ENOUGH = 20
"""Steps after the first search before a share of them means anything."""

LONGEST_SEARCH = 24
"""Skips in a row at the start: 65,536 comes down to 1 in 16, and to 0.004, where no gradient should overflow, in 24."""


HELD = 8
"""Skips in a row through which a scale that is meant to fall does not stay: the most that a scaler waits for is a few."""


def detect(record: Record) -> Verdict:
    """Judge the steps in which the scaler was asked, in the run under study."""
    run = record.run
    scaler = scaling(run)
    if scaler is None:
        return _answer("not_applicable", "scaler-not-asked")
    first = int(scaler.skipped.argmin()) if not scaler.skipped.all() else len(scaler.skipped)
    after = len(scaler.skipped) - first
    unexplained = _unexplained(scaler, first)
    evidence = {
        "skipped_steps": Quantity(int(scaler.skipped.sum()), f"of {len(scaler.skipped)}"),
        "skipped_in_the_first_search": Quantity(first, "steps"),
        "unexplained_skips": Quantity(unexplained, f"of {after} steps after it"),
        "scale_first": Quantity(float(scaler.scale[0])),
        "scale_last": Quantity(float(scaler.scale[-1])),
    }
    where = str(run.fact("loop_where", "")) or None
    if after == 0:
        return _never_stepped(scaler, first, evidence, where)
    share, waste = unexplained / after, float(scaler.skipped.mean())
    if share > MANY and after >= ENOUGH:
        return _answer("found", "skips-beyond-the-search", evidence, where=where, waste=waste, skipped=share)
    if share > RARE:
        return _answer("inconclusive", "too-few-skips", evidence, skipped=unexplained, steps=after)
    return _answer("clear", "skips-only-in-the-search" if scaler.skipped.any() else "no-step-skipped", evidence)


def _unexplained(scaler: Scaling, first: int) -> int:
    """Skips after the first search beyond those that undo a doubling: near the edge, each doubling is undone by one skip.

    Gradients differ from batch to batch, so the skip need not come at once.
    """
    growths = int((np.diff(scaler.scale[first:]) > 0).sum())
    return max(0, int(scaler.skipped[first:].sum()) - growths)


def _never_stepped(scaler: Scaling, first: int, evidence: dict[str, Quantity], where: str | None) -> Verdict:
    last = float(scaler.scale[-1])
    if first >= HELD and (scaler.scale >= scaler.scale[0]).all():
        return _answer("found", "scale-never-falls", evidence, where=where, waste=1.0, steps=first, scale=last)
    asked = int(scaler.asked.sum())
    evidence = evidence | {"asked": Quantity(asked, "times for a step")}
    if asked >= LONGEST_SEARCH and last <= 1:
        return _answer("found", "not-finite-at-any-scale", evidence, where=where, waste=1.0, steps=asked, scale=last)
    return _answer("inconclusive", "scale-still-falls", evidence, steps=asked, scale=last)
