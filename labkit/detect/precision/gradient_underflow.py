"""Do gradients that fp32 keeps become 0?

Below half its smallest number a format keeps nothing: 3e-8 in fp16. Zeros alone say little: ReLU and blank pixels make
them in fp32 too, so only those beyond the fp32 run's own count.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.roles import Role
from ...record.schema import Record
from ..verdict import Verdict, answering
from .measures import excess, scaling, updates_of, zero_shares

NAME = "gradient-underflow"
QUESTION = "Do gradients that fp32 keeps become 0?"
_answer = answering(NAME, QUESTION)

WORTH_SAYING = 0.05
"""Share of the gradients that fp32 keeps; less than this is lost without harm."""

ENOUGH = 3
"""Updates to compare before their spread means anything."""


def detect(record: Record) -> Verdict:
    """Compare the share of zero gradients with the fp32 reference's, over all updates."""
    run, reference = record.run, record.runs.get(Role.REFERENCE)
    if not updates_of(run):
        return _no_updates(record)
    if reference is None or not updates_of(reference):
        return _answer("not_applicable", "no-fp32-run-to-compare-zeros")
    found = excess(zero_shares(run), zero_shares(reference))
    if found is None or found.updates < ENOUGH:
        compared = found.updates if found else 0
        return _answer("inconclusive", "too-few-finite-gradients", compared=compared, enough=ENOUGH)
    evidence = {
        "zero_gradients": Quantity(found.own, "of elements"),
        "zero_gradients_fp32": Quantity(found.reference, "of elements"),
        "lost_of_what_fp32_keeps": Quantity(found.share, "of elements"),
        "updates": Quantity(found.updates, "compared"),
    }
    if found.low > WORTH_SAYING:
        return _answer(
            "found",
            "gradients-below-the-smallest-number",
            evidence,
            where=str(run.fact("loop_where", "")) or None,
            own=found.own,
            fp32=found.reference,
            lost=found.share,
        )
    if found.high < WORTH_SAYING:
        return _answer("clear", "zeros-as-in-fp32", evidence, within=WORTH_SAYING)
    return _answer("inconclusive", "zeros-vary-from-step-to-step", evidence, more=found.share)


def _no_updates(record: Record) -> Verdict:
    scaler = scaling(record.run)
    if scaler is not None and scaler.skipped.all():
        return _answer("inconclusive", "every-step-was-skipped")
    return _answer("not_applicable", "no-gradients-recorded")
