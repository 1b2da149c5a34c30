"""Is the resumed run the run that nothing interrupted?

Two signs, and either is enough: a state whose hash after the resume is not the one it was saved with; and, beside the
uninterrupted run, the first step at which the loss differs. When it differs says what is missing: at the first step the
weights, the data or the random numbers; a step later the optimizer; later still a schedule.

Another number of ranks cannot keep the bits: sums come in another order, and ranks draw other random numbers. There states
are compared that all ranks share, and losses but for rounding; where random numbers differ, only a large setback tells.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ...words import plural
from ..runs import weights_equal
from ..verdict import Verdict, answering, either
from .measures import (
    BEFORE,
    REFERENCE,
    attempts,
    first_difference,
    largest_gap,
    resumed_at,
    share_forgotten,
    shared_states_not_restored,
    states_not_restored,
)

NAME = "resume-departs"
QUESTION = "Does the resumed run depart from the uninterrupted one?"
_answer = answering(NAME, QUESTION)

ROUNDING = 1e-4
"""Relative gap of the loss that another order of sums may make over a short run, where the number of ranks changed."""

FORGOTTEN = 0.5
"""Share of what was learnt that the loss falls back by, from which on no random numbers explain it."""

FIX = (
    "save and restore {what}; random generators per rank, and after iter(loader), which draws a number "
    "(labkit.workloads.resumable)"
)


def detect(record: Record) -> Verdict:
    """Compare states across the resume, and losses with the uninterrupted run's."""
    run, reference = record.run, record.runs.get(REFERENCE)
    begun = resumed_at(run)
    if begun is None:
        return _answer(
            "not_applicable",
            cause="the run was not interrupted and resumed",
            fix=either(
                lab="kill a rank on purpose (Fault(kind='kill', rank=0, step=…)) and let the launcher start again",
                script="kill a rank on purpose and let the launcher start again; rank 0 then writes "
                "rank-00000.attempt1.jsonl, with Probe(…, attempt=1) and probe.resume_at(step)",
            ),
        )
    missing = states_not_restored(run) or []
    evidence = {"resumed_at": Quantity(begun, "steps done")}
    if missing:
        evidence["states_not_restored"] = Quantity(", ".join(missing))
    if reference is None:
        return _without_reference(run, begun, missing, evidence)
    if reference.world_size != run.world_size:
        return _other_number_of_ranks(record, reference, begun, evidence)
    step, equal = first_difference(run, reference), weights_equal(run, reference)
    if equal is not None:
        evidence["weights_equal_uninterrupted"] = Quantity(equal)
    if step is None:
        return _same_losses(run, begun, missing, equal, evidence)
    evidence["departs_at"] = Quantity(step, "(the first step is 0)")
    if step < _first_resume(run, begun):
        return _answer(
            "inconclusive",
            evidence,
            cause=f"the runs differ from step {step} on, before the crash: the program does not repeat itself to the bit",
            fix="seed every generator, use deterministic algorithms and equal threads, and run both again",
        )
    return _answer(
        "found",
        evidence,
        cause=f"the loss departs from the uninterrupted run's at step {step}, {_said(step - begun)}: "
        + _why(step, begun, missing),
        fix=FIX.format(what=", ".join(missing) or "all state"),
        where=str(run.fact("keeper_where", "")) or None,
    )


def _first_resume(run: Run, begun: int) -> int:
    """The lowest step at which any attempt but the first began."""
    firsts = [attempt.first_step for attempt in attempts(run)[1:] if attempt.first_step is not None]
    return min([begun, *firsts])


def _same_losses(run: Run, begun: int, missing: list[str], equal: bool | None, evidence: dict[str, Quantity]) -> Verdict:
    where = str(run.fact("keeper_where", "")) or None
    if begun > 0 and missing:
        return _answer(
            "found",
            evidence,
            cause=f"no loss differs within this run, but {', '.join(missing)} did not come back: it will show later",
            fix=FIX.format(what=", ".join(missing)),
            where=where,
        )
    if equal is False:
        return _answer(
            "found",
            evidence,
            cause="the losses are equal, but the final weights are not: the last update departs",
            fix=FIX.format(what="all state"),
            where=where,
        )
    if begun == 0:
        return _answer(
            "clear", evidence, cause="it began again at the first step and repeats the uninterrupted run to the bit"
        )
    return _answer("clear", evidence, cause="every loss, and the final weights, are the uninterrupted run's to the bit")


def _without_reference(run: Run, begun: int, missing: list[str], evidence: dict[str, Quantity]) -> Verdict:
    if missing and begun > 0:
        return _answer(
            "found",
            evidence,
            cause=f"after the resume {', '.join(missing)} is not what was saved",
            fix=FIX.format(what=", ".join(missing)),
            where=str(run.fact("keeper_where", "")) or None,
        )
    if states_not_restored(run) is not None:
        return _answer("clear", evidence, cause="after the resume every state that the program tells is what was saved")
    return _answer(
        "not_applicable",
        evidence,
        cause="there is no uninterrupted run to compare with, and the program tells no hashes of its state",
        fix=either(
            lab=f"run the same without a crash, as the record's '{REFERENCE}' run",
            script="record a hash of each state when it is saved and when it is back: probe.event('state', when='saved' or "
            "'resumed', of_step=…, weights=…, optimizer=…)",
        ),
    )


def _other_number_of_ranks(record: Record, reference: Run, begun: int, evidence: dict[str, Quantity]) -> Verdict:
    run = record.run
    sizes = f"{plural(reference.world_size, 'rank')} and on {run.world_size}"
    before = record.runs.get(BEFORE)
    missing = (shared_states_not_restored(before, run) or []) if before is not None else []
    if missing:
        said = ", ".join(missing)
        return _answer(
            "found",
            evidence | {"states_not_restored": Quantity(said)},
            cause=f"{said} did not come back on {plural(run.world_size, 'rank')}, and all ranks share it",
            fix=FIX.format(what=said),
            where=str(run.fact("keeper_where", "")) or None,
        )
    gap = largest_gap(run, reference)
    if gap is None:
        return _answer(
            "not_applicable",
            evidence,
            cause="the two runs have no step in common whose loss all ranks tell",
            fix="record loss_local and batch_samples in both",
        )
    evidence = evidence | {"loss_gap_largest": Quantity(gap, "relative")}
    if gap < ROUNDING:
        return _answer("clear", evidence, cause=f"on {sizes} the losses agree but for the order of sums")
    apart = f"on {sizes} the losses differ by up to {gap:.1e}"
    forgotten = share_forgotten(run, reference, begun)
    if run.fact("rank_draws") is False or (forgotten or 0.0) >= FORGOTTEN:
        if forgotten is not None:
            evidence |= {"share_forgotten": Quantity(forgotten, "of what had been learnt")}
        return _answer(
            "found",
            evidence,
            cause=f"{apart}: more than the order of sums explains",
            fix="restore all state that the ranks share, and keep the global batch and the order of the data when the "
            "number of ranks changes",
        )
    return _answer(
        "inconclusive",
        evidence,
        cause=f"{apart}: random numbers that each rank draws for itself (dropout, augmentation) explain that as well, and "
        "another number of ranks cannot repeat them",
        fix=either(
            lab="run without them: --set dropout=0 --set augment=false",
            script="run without dropout and augmentation, and say so: probe.declare(rank_draws=False)",
        ),
    )


def _said(later: int) -> str:
    return {0: "at once", 1: "one step after the resume"}.get(later, f"{later} steps after the resume")


def _why(step: int, begun: int, missing: list[str]) -> str:
    if missing:
        return f"{', '.join(missing)} did not come back"
    if step == begun:
        return "weights, data or random numbers are not those of the run before"
    if step == begun + 1:
        return "the first update is another: the optimizer's state, its learning rate or the scale of the loss"
    return "a later update is another: a schedule that counts from the resume, or sums in another order"
