"""Do updates change the weights?

A weight in 16 bits has neighbours: fp16 near 0.1 every 6e-5, bf16 every 5e-4. An update below half of that rounds away,
step after step, however many there are. Weights kept in fp32 (a master copy, as autocast has it) add them up.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ...words import plural
from ..verdict import Verdict, answering
from .measures import excess, lost_shares, memory_of, updates_of

NAME = "lost-updates"
QUESTION = "Do updates vanish that fp32 weights keep?"
_answer = answering(NAME, QUESTION)

WORTH_SAYING = 0.05
"""Share of the updates; in fp32 a few are too small for their weight as well."""

ENOUGH = 3

SHORT_FIX = (
    "keep the weights in fp32 and compute under torch.autocast, instead of .half() or .bfloat16(); if they must be 16 bits, "
    "give the optimizer an fp32 master copy"
)
FP32_FIX = "the weights are fp32 already: see what makes the gradients so small (clipping, scaling, the learning rate)"


def detect(record: Record) -> Verdict:
    """Compare the share of updates that change nothing, where the gradient is not 0, with the fp32 reference's."""
    run, reference = record.run, record.runs.get("reference")
    own = lost_shares(run)
    if not len(own):
        return _none_seen(run)
    found = excess(own, lost_shares(reference)) if reference is not None else None
    if found is None:
        return _answer(
            "not_applicable",
            cause="there is no fp32 run to compare with: with a tiny learning rate fp32 loses updates too",
            fix="run the same steps in fp32 too, as the record's reference",
        )
    evidence = {
        "lost_updates": Quantity(found.own, "of updates"),
        "lost_updates_fp32": Quantity(found.reference, "of updates"),
        "updates": Quantity(found.updates, "compared"),
    }
    if found.updates < ENOUGH:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"only {plural(found.updates, 'update')} can be compared",
            fix=f"run {ENOUGH} steps or more",
        )
    if found.low > WORTH_SAYING:
        cause = f"{found.own:.0%} of the updates leave their weight as it was, in the fp32 run {found.reference:.1%}"
        return _answer(
            "found",
            evidence,
            cause=f"{cause}: they are less than half the gap to the weight's neighbour" + _in_which_weights(record),
            fix=FP32_FIX if weights_are_fp32(record) else SHORT_FIX,
            where=str(run.fact("loop_where", "")) or None,
        )
    if found.high < WORTH_SAYING:
        return _answer("clear", evidence, cause=f"updates are lost no more often than in fp32, within {WORTH_SAYING:.0%}")
    return _answer(
        "inconclusive",
        evidence,
        cause=f"{found.share:.0%} more updates are lost than in fp32, but from step to step the share varies as much",
        fix="run more steps",
    )


def _none_seen(run: Run) -> Verdict:
    if any("updates_lost" in step.counts for step in updates_of(run)):
        return _answer(
            "inconclusive",
            cause="no update with finite weights and gradients other than 0 was seen",
            fix="repair what makes them so first",
        )
    return _answer(
        "not_applicable",
        cause="the program did not record which updates change a weight",
        fix="record counts updates_lost, gradient_elements and gradient_zeros as the optimizer steps",
    )


def weights_are_fp32(record: Record) -> bool:
    """Whether the weights take as many bytes as the reference's, so that their format is not what loses updates."""
    own, reference = memory_of(record.run), memory_of(record.runs["reference"])
    return bool(own and reference and own["weights_bytes"] == reference["weights_bytes"])


def _in_which_weights(record: Record) -> str:
    return ", even in fp32" if weights_are_fp32(record) else ""
