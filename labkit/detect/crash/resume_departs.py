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
from ..runs import weights_equal
from ..verdict import Verdict, answering
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
QUESTION = "Does the resumed run differ from the uninterrupted one?"
_answer = answering(NAME, QUESTION)

ROUNDING = 1e-4
"""Relative gap of the loss that another order of sums may make over a short run, where the number of ranks changed."""

FORGOTTEN = 0.5
"""Share of what was learnt that the loss falls back by, from which on no random numbers explain it."""

LATER = 2
"""Steps after a resume from which on a departure is later than the first update."""

DEPARTS = {  # by whether states are known to be lost, and by how many steps after the resume the losses depart
    (True, 0): "states-lost-and-departs-at-once",
    (True, 1): "states-lost-and-departs-after-one-step",
    (True, LATER): "states-lost-and-departs-later",
    (False, 0): "departs-at-once",
    (False, 1): "departs-after-one-step",
    (False, LATER): "departs-later",
}


def detect(record: Record) -> Verdict:
    """Compare states across the resume, and losses with the uninterrupted run's."""
    run, reference = record.run, record.runs.get(REFERENCE)
    begun = resumed_at(run)
    if begun is None:
        return _answer("not_applicable", "never-resumed")
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
    return _departs(run, begun, step, missing, evidence)


def _departs(run: Run, begun: int, step: int, missing: list[str], evidence: dict[str, Quantity]) -> Verdict:
    """By how long after a resume the losses depart: what is wrong at once, with the first update, or later."""
    if step < begun:  # before the last resume: an earlier one may be why
        begun = max((at for at in _resumes(run) if at <= step), default=begun)
    if step < begun:
        return _answer("inconclusive", "program-does-not-repeat-itself", evidence, step=step)
    later = step - begun
    numbers = {"step": step} | ({"later": later} if later >= LATER else {}) | ({"states": missing} if missing else {})
    return _answer("found", DEPARTS[bool(missing), min(later, LATER)], evidence, where=_where(run), **numbers)


def _resumes(run: Run) -> list[int]:
    """The steps at which attempts began, but for the first."""
    return [attempt.first_step for attempt in attempts(run)[1:] if attempt.first_step is not None]


def _where(run: Run) -> str | None:
    return str(run.fact("keeper_where", "")) or None


def _same_losses(run: Run, begun: int, missing: list[str], equal: bool | None, evidence: dict[str, Quantity]) -> Verdict:
    if begun > 0 and missing:
        return _answer("found", "states-lost-and-not-yet-seen", evidence, where=_where(run), states=missing)
    if equal is False:
        return _answer("found", "last-update-departs", evidence, where=_where(run))
    return _answer("clear", "began-again-and-repeats" if begun == 0 else "resumed-to-the-bit", evidence)


def _without_reference(run: Run, begun: int, missing: list[str], evidence: dict[str, Quantity]) -> Verdict:
    if missing and begun > 0:
        return _answer("found", "states-are-not-as-saved", evidence, where=_where(run), states=missing)
    if states_not_restored(run) is not None:
        return _answer("clear", "states-are-as-saved", evidence)
    return _answer("not_applicable", "no-uninterrupted-run", evidence)


def _other_number_of_ranks(record: Record, reference: Run, begun: int, evidence: dict[str, Quantity]) -> Verdict:
    run, before = record.run, record.runs.get(BEFORE)
    missing = (shared_states_not_restored(before, run) or []) if before is not None else []
    if missing:
        evidence |= {"states_not_restored": Quantity(", ".join(missing))}
        return _answer("found", "shared-states-lost", evidence, where=_where(run), states=missing, ranks=run.world_size)
    gap = largest_gap(run, reference)
    if gap is None:
        return _answer("not_applicable", "no-step-in-common", evidence)
    evidence |= {"loss_gap_largest": Quantity(gap, "relative")}
    sizes = {"before": reference.world_size, "ranks": run.world_size}
    if gap < ROUNDING:
        return _answer("clear", "losses-agree-but-for-rounding", evidence, **sizes)
    forgotten = share_forgotten(run, reference, begun)
    if run.fact("rank_draws") is False or (forgotten or 0.0) >= FORGOTTEN:
        if forgotten is not None:
            evidence |= {"share_forgotten": Quantity(forgotten, "of what had been learnt")}
        return _answer("found", "losses-differ-by-more-than-rounding", evidence, **sizes, gap=gap)
    return _answer("inconclusive", "random-numbers-may-explain-it", evidence, **sizes, gap=gap)
