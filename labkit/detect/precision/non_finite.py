"""Do loss and weights stay finite?

Once a weight is NaN, so is everything after it, without an error. Gradients that a scaler sees to be infinite and skips
are its work, not a finding.
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ...words import plural
from ..runs import train_steps
from ..verdict import Verdict, answering
from .measures import NonFinite, first_nonfinite, steps_of

NAME = "non-finite"
QUESTION = "Do loss and weights stay finite?"
_answer = answering(NAME, QUESTION)

ENOUGH = 10
"""Steps without a NaN before their absence is an answer; what overflows at once does so in the first few."""

FIXES = {
    "weights": "keep weights and optimizer state in fp32 (autocast instead of .half()): in fp16 Adam's eps and squared "
    "gradients round to 0, and 0/0 is NaN",
    "gradients": "scale the loss with torch.amp.GradScaler, which skips such steps, or compute in bf16",
    "loss": "compute what overflows (a sum, an exponential, a loss) in fp32, or all of it in bf16, whose range is fp32's",
}


def detect(record: Record) -> Verdict:
    """Look for the first value that is no number, in the run under study."""
    run = record.run
    steps = steps_of(run)
    recorded = [step for log in run.ranks for step in train_steps(log) if "loss_local" in step.scalars]
    if not recorded:
        return _answer(
            "not_applicable",
            cause="the program recorded no loss",
            fix="record it with probe.scalar('loss_local', loss.item())",
        )
    first = first_nonfinite(run)
    bad_losses = sum(not np.isfinite(step.scalar("loss_local")) for step in recorded)
    evidence = {"steps": Quantity(len(steps), "steps"), "losses_not_finite": Quantity(bad_losses, "steps of all ranks")}
    if first is None:
        if len(steps) < ENOUGH:
            return _answer(
                "inconclusive",
                evidence,
                cause=f"all is finite, but the run has {plural(len(steps), 'step')} only",
                fix=f"run {ENOUGH} steps or more",
            )
        return _answer("clear", evidence, cause=f"loss and weights are finite in all {len(steps)} steps")
    evidence["first_step"] = Quantity(first.step, first.what)
    return _answer(
        "found",
        evidence,
        cause=_cause(first, run),
        fix=FIXES[first.what],
        where=str(run.fact("loop_where", "")) or None,
    )


def _cause(first: NonFinite, run: Run) -> str:
    where = "" if len(first.ranks) == run.world_size else f" on rank {', '.join(map(str, first.ranks))}"
    text = (
        f"the {first.what} hold{'s' * (first.what == 'loss')} NaN or infinity at step {first.step}{where}, and no error is "
        "raised"
    )
    recorded = [[s.scalar("loss_local") for s in train_steps(log) if "loss_local" in s.scalars] for log in run.ranks]
    return text + (
        "" if any(np.isfinite(values[-1]) for values in recorded if values) else "; so does every loss to the end"
    )
