"""Do loss and weights stay finite?

Once a weight is NaN, so is everything after it, without an error. Gradients that a scaler sees to be infinite and skips
are its work, not a finding.
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..catalogue import said
from ..runs import train_steps
from ..verdict import Verdict, answering
from .measures import NonFinite, first_nonfinite, steps_of

NAME = "non-finite"
QUESTION = "Do loss and weights stay finite?"
_answer = answering(NAME, QUESTION)

ENOUGH = 10
"""Steps without a NaN before their absence is an answer; what overflows at once does so in the first few."""

REASONS = {"weights": "weights-not-finite", "gradients": "gradients-not-finite", "loss": "loss-not-finite"}


def detect(record: Record) -> Verdict:
    """Look for the first value that is no number, in the run under study."""
    run = record.run
    steps = steps_of(run)
    recorded = [step for log in run.ranks for step in train_steps(log) if "loss_local" in step.scalars]
    if not recorded:
        return _answer("not_applicable", "no-loss-recorded")
    first = first_nonfinite(run)
    bad_losses = sum(not np.isfinite(step.scalar("loss_local")) for step in recorded)
    evidence = {"steps": Quantity(len(steps), "steps"), "losses_not_finite": Quantity(bad_losses, "steps of all ranks")}
    if first is not None:
        return _found(first, run, evidence)
    if len(steps) < ENOUGH:
        return _answer("inconclusive", "too-few-finite-steps", evidence, seen=len(steps), enough=ENOUGH)
    return _answer("clear", "all-is-finite", evidence, steps=len(steps))


def _found(first: NonFinite, run: Run, evidence: dict[str, Quantity]) -> Verdict:
    recorded = [[s.scalar("loss_local") for s in train_steps(log) if "loss_local" in s.scalars] for log in run.ranks]
    recovers = any(np.isfinite(values[-1]) for values in recorded if values)
    return _answer(
        "found",
        REASONS[first.what],
        evidence | {"first_step": Quantity(first.step, first.what)},
        where=str(run.fact("loop_where", "")) or None,
        step=first.step,
        on="" if len(first.ranks) == run.world_size else said("on-some-ranks", ranks=first.ranks),
        after="" if recovers else said("to-the-end"),
    )
