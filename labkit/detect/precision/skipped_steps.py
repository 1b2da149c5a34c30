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

FIX = (
    "find the batches whose loss or gradients are not finite; clip after unscale_, lower the learning rate, or compute the "
    "part that overflows in fp32 or bf16"
)

LONGEST_SEARCH = 24
"""Skips in a row at the start: 65,536 comes down to 1 in 16, and to 0.004, where no gradient should overflow, in 24."""


HELD = 8
"""Skips in a row through which a scale that is meant to fall does not stay: the most that a scaler waits for is a few."""


def detect(record: Record) -> Verdict:
    """Judge the steps in which the scaler was asked, in the run under study."""
    run = record.run
    scaler = scaling(run)
    if scaler is None:
        return _answer(
            "not_applicable",
            cause="no gradient scaler was asked for a step",
            fix="train with a GradScaler, and record its scale",
        )
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
    share = unexplained / after
    if share > MANY and after >= ENOUGH:
        cause = (
            f"{share:.0%} of the steps after the first search are skipped, beyond one for each doubling of the scale: "
            "gradients overflow or are NaN in some batches, and those batches teach nothing"
        )
        return _answer("found", evidence, cause=cause, fix=FIX, where=where, waste=float(scaler.skipped.mean()))
    if share <= RARE:
        looking = "steps are skipped only as the scaler looks for its scale"
        return _answer("clear", evidence, cause=looking if scaler.skipped.any() else "no step is skipped")
    return _answer(
        "inconclusive",
        evidence,
        cause=f"{unexplained} of {after} steps are skipped beyond one for each doubling of the scale: too few "
        "to tell chance from a fault",
        fix="run more steps",
    )


def _unexplained(scaler: Scaling, first: int) -> int:
    """Skips after the first search beyond those that undo a doubling: near the edge, each doubling is undone by one skip.

    Gradients differ from batch to batch, so the skip need not come at once.
    """
    growths = int((np.diff(scaler.scale[first:]) > 0).sum())
    return max(0, int(scaler.skipped[first:].sum()) - growths)


def _never_stepped(scaler: Scaling, first: int, evidence: dict[str, Quantity], where: str | None) -> Verdict:
    if first >= HELD and (scaler.scale >= scaler.scale[0]).all():
        return _answer(
            "found",
            evidence,
            cause=f"every one of {first} steps is skipped, and the scale stays at {scaler.scale[-1]:,.4g}: nothing brings "
            "it down, and the weights never change",
            fix="call scaler.update() after each scaler.step(optimizer), and give it no scale of its own; a fixed scale "
            "must be small enough for every gradient",
            where=where,
            waste=1.0,
        )
    if first >= LONGEST_SEARCH and scaler.scale[-1] <= 1:
        return _answer(
            "found",
            evidence,
            cause=f"every one of {first} steps is skipped, and the scale has sunk to {scaler.scale[-1]:.2g}: the loss or a "
            "gradient is infinite or NaN whatever the scale, and the weights never change",
            fix="find what is not finite in the forward pass (torch.autograd.set_detect_anomaly), and repair that",
            where=where,
            waste=1.0,
        )
    return _answer(
        "inconclusive",
        evidence,
        cause=f"every one of {first} steps is skipped, but the scale ({scaler.scale[-1]:.3g}) is still coming down",
        fix="run more steps, or begin with a smaller scale",
    )
