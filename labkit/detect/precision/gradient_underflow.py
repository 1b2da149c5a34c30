"""Do gradients become 0 that fp32 keeps?

Below half its smallest number a format keeps nothing: 3e-8 in fp16. Zeros alone say little: ReLU and blank pixels make
them in fp32 too, so only those beyond the fp32 run's own count.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record
from ...words import plural
from ..verdict import Verdict, answering
from .measures import excess, scaling, updates_of, zero_shares

NAME = "gradient-underflow"
QUESTION = "Do gradients become 0 that fp32 keeps?"
_answer = answering(NAME, QUESTION)

WORTH_SAYING = 0.05
"""Share of the gradients that fp32 keeps; less than this is lost without harm."""

ENOUGH = 3
"""Updates to compare before their spread means anything."""


def detect(record: Record) -> Verdict:
    """Compare the share of zero gradients with the fp32 reference's, over all updates."""
    run, reference = record.run, record.runs.get("reference")
    if not updates_of(run):
        return _no_updates(record)
    if reference is None or not updates_of(reference):
        return _answer(
            "not_applicable",
            cause="there is no fp32 run to compare with, and ReLU and blank inputs make zeros in any precision",
            fix="run the same steps in fp32 too, as the record's reference",
        )
    found = excess(zero_shares(run), zero_shares(reference))
    if found is None or found.updates < ENOUGH:
        count = found.updates if found else 0
        return _answer(
            "inconclusive",
            cause=f"only {plural(count, 'update')} with finite gradients can be compared",
            fix=f"run {ENOUGH} steps or more; where gradients are not finite, repair that first",
        )
    evidence = {
        "zero_gradients": Quantity(found.own, "of elements"),
        "zero_gradients_fp32": Quantity(found.reference, "of elements"),
        "lost_of_what_fp32_keeps": Quantity(found.share, "of elements"),
        "updates": Quantity(found.updates, "compared"),
    }
    if found.low > WORTH_SAYING:
        return _answer(
            "found",
            evidence,
            cause=f"{found.own:.0%} of the gradient elements are exactly 0, in fp32 {found.reference:.0%}: "
            f"{found.share:.0%} of what fp32 keeps lies below the smallest number of the 16-bit format",
            fix="scale the loss with torch.amp.GradScaler (scale, step, update), or compute in bf16, which has fp32's range",
            where=str(run.fact("loop_where", "")) or None,
        )
    if found.high < WORTH_SAYING:
        return _answer("clear", evidence, cause=f"zeros are as frequent as in fp32, within {WORTH_SAYING:.0%}")
    cause = f"zeros exceed fp32's by {found.share:.0%}, but from step to step the share varies as much"
    return _answer("inconclusive", evidence, cause=cause, fix="run more steps")


def _no_updates(record: Record) -> Verdict:
    scaler = scaling(record.run)
    if scaler is not None and scaler.skipped.all():
        return _answer(
            "inconclusive",
            cause="the scaler skipped every step, so the optimizer took no gradient",
            fix="see to the skipped steps first",
        )
    return _answer(
        "not_applicable",
        cause="the program recorded no gradients",
        fix="record counts updates, gradient_elements and gradient_zeros as the optimizer steps",
    )
