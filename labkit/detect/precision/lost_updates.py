"""Do updates change the weights?

A weight in 16 bits has neighbours: fp16 near 0.1 every 6e-5, bf16 every 5e-4. An update below half of that rounds away,
step after step, however many there are. Weights kept in fp32 (a master copy, as autocast has it) add them up. So do
weights that are rounded by chance, or beside which something keeps what rounding took: then most single updates change
nothing, and in the end the weights have moved all the same.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.roles import Role
from ...record.schema import Record, Run
from ..verdict import Verdict, answering
from .measures import Excess, excess, lost_shares, memory_of, never_moved, updates_of

NAME = "lost-updates"
QUESTION = "Are updates lost that fp32 weights would keep?"
_answer = answering(NAME, QUESTION)

WORTH_SAYING = 0.05
"""Share of the updates; in fp32 a few are too small for their weight as well."""

ENOUGH = 3

HALF = 0.5
"""Weights that never moved, against updates that changed nothing: where updates come through the share sinks with each."""


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
        return _of_many(record, found, evidence)
    if found.high < WORTH_SAYING:
        return _answer("clear", "updates-lost-as-in-fp32", evidence, within=WORTH_SAYING)
    return _answer("inconclusive", "lost-updates-vary-from-step-to-step", evidence, more=found.share)


def _of_many(record: Record, lost: Excess, evidence: dict[str, Quantity]) -> Verdict:
    """Many updates change nothing one by one: whether the weights move in the end, where that was recorded."""
    run, reference = record.run, record.runs[Role.REFERENCE]
    still, beside = never_moved(run), never_moved(reference)
    if still is not None:
        evidence = {**evidence, "never_moved": Quantity(still, "of weights")}
        beyond = still - (beside or 0.0)
        told = {"own": lost.own, "still": still, "steps": len(updates_of(run))}
        if beyond < WORTH_SAYING:
            return _answer("clear", "updates-come-through", evidence, **told)
        if beyond < HALF * lost.share:
            return _answer("inconclusive", "updates-may-come-through", evidence, **told)
    return _answer(
        "found",
        "updates-round-away-in-fp32-weights" if weights_are_fp32(record) else "updates-round-away",
        evidence,
        where=str(run.fact("loop_where", "")) or None,
        own=lost.own,
        fp32=lost.reference,
    )


def _none_seen(run: Run) -> Verdict:
    if any("updates_lost" in step.counts for step in updates_of(run)):
        return _answer("inconclusive", "no-finite-update")
    return _answer("not_applicable", "lost-updates-not-recorded")


def weights_are_fp32(record: Record) -> bool:
    """Whether the weights take as many bytes as the reference's, so that their format is not what loses updates."""
    own, reference = memory_of(record.run), memory_of(record.runs[Role.REFERENCE])
    return bool(own and reference and own["weights_bytes"] == reference["weights_bytes"])
