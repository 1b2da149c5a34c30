"""Do updates change the weights?

A weight in 16 bits has neighbours: fp16 near 0.1 every 6e-5, bf16 every 5e-4. An update below half of that rounds away,
step after step, however many there are. Weights kept in fp32 (a master copy, as autocast has it) add them up.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.roles import Role
from ...record.schema import Record, Run
from ..verdict import Verdict, answering
from .measures import excess, lost_shares, memory_of, updates_of

NAME = "lost-updates"
QUESTION = "Are updates lost that fp32 weights would keep?"
_answer = answering(NAME, QUESTION)

WORTH_SAYING = 0.05
"""Share of the updates; in fp32 a few are too small for their weight as well."""

ENOUGH = 3


def detect(record: Record) -> Verdict:
    """Compare the share of updates that change nothing, where the gradient is not 0, with the fp32 reference's."""
    run, reference = record.run, record.runs.get(Role.REFERENCE)
    own = lost_shares(run)
    if not len(own):
        return _none_seen(run)
    found = excess(own, lost_shares(reference)) if reference is not None else None
    if found is None:
        return _answer("not_applicable", "no-fp32-run-to-compare-updates")
    evidence = {
        "lost_updates": Quantity(found.own, "of updates"),
        "lost_updates_fp32": Quantity(found.reference, "of updates"),
        "updates": Quantity(found.updates, "compared"),
    }
    if found.updates < ENOUGH:
        return _answer("inconclusive", "too-few-updates-to-compare", evidence, compared=found.updates, enough=ENOUGH)
    if found.low > WORTH_SAYING:
        return _answer(
            "found",
            "updates-round-away-in-fp32-weights" if weights_are_fp32(record) else "updates-round-away",
            evidence,
            where=str(run.fact("loop_where", "")) or None,
            own=found.own,
            fp32=found.reference,
        )
    if found.high < WORTH_SAYING:
        return _answer("clear", "updates-lost-as-in-fp32", evidence, within=WORTH_SAYING)
    return _answer("inconclusive", "lost-updates-vary-from-step-to-step", evidence, more=found.share)


def _none_seen(run: Run) -> Verdict:
    if any("updates_lost" in step.counts for step in updates_of(run)):
        return _answer("inconclusive", "no-finite-update")
    return _answer("not_applicable", "lost-updates-not-recorded")


def weights_are_fp32(record: Record) -> bool:
    """Whether the weights take as many bytes as the reference's, so that their format is not what loses updates."""
    own, reference = memory_of(record.run), memory_of(record.runs[Role.REFERENCE])
    return bool(own and reference and own["weights_bytes"] == reference["weights_bytes"])
