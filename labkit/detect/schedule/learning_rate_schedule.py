"""Does the learning rate follow its schedule to the end of the run?

A schedule counts its own steps. Where it is stepped W or K times an update (once a rank, once a micro-batch), it is through
long before the run is, and the rest of the run changes nothing. Stepped once an epoch where it was made for updates, it
hardly begins. No error is raised; the loss is flat, as at the end of any training.
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..agreement.own_models import own_models
from ..verdict import Verdict, answering
from .calls import of_astray, of_calls, of_metric, of_unread

NAME = "learning-rate-schedule"
QUESTION = "Does the learning rate last as long as the run?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

REST, FEW = 0.1, 5
"""Share of the run, and updates, at the end for which a rate of 0 is no matter of where the last step falls."""

BEGIN = 0.05
"""Share of the run at its begin for which a rate of 0 is no matter of the first step of a warm-up."""

NOTHING = 1e-4
"""Of its largest value, below which a learning rate does as little as 0."""

ENOUGH = 5
"""Updates before anything is said."""


def detect(record: Record) -> Verdict:
    """Judge the learning rate of each update."""
    run = record.run
    rates = [_rates(run, rank) for rank in range(run.world_size)]
    if not len(rates[0]):
        return _answer("not_applicable", "learning-rates-not-recorded")
    where = next((str(e.fields["where"]) for e in run.ranks[0].events if e.name == "scheduler"), "") or None
    least, last = float(rates[0].min()), float(rates[0][-1])
    evidence = {
        "updates": Quantity(len(rates[0])),
        "first": Quantity(float(rates[0][0]), "learning rate"),
        "last": Quantity(last, "learning rate"),
        "scheduler_steps": Quantity(_per_update(run), "an update"),
    }
    if least < 0:
        at = int(np.argmax(rates[0] < 0))
        return _answer("found", "learning-rate-negative", evidence, where=where, update=at, rate=least)
    if len({len(of_rank) for of_rank in rates}) == 1 and not all((of_rank == rates[0]).all() for of_rank in rates):
        if own_models(run):
            return _answer("inconclusive", "learning-rates-of-models-apart", evidence)
        at = int(np.argmax(np.any([of_rank != rates[0] for of_rank in rates], axis=0)))
        if at == 0 and _trains_alone(run):
            return _answer("inconclusive", "each-rank-tries-its-own-rate", evidence)
        return _answer("found", "learning-rate-differs-between-ranks", evidence, where=where, update=at)
    if len(rates[0]) < ENOUGH:
        return _answer("inconclusive", "too-few-learning-rates", evidence, updates=len(rates[0]))
    return (
        _of_ends(rates[0], where, evidence)
        or of_astray(run, rates[0], evidence, _answer)
        or of_unread(run, rates[0], evidence, _answer)
        or of_metric(run, where, evidence, _answer)
        or of_calls(run, rates[0], where, evidence, _answer)
        or _answer("clear", "learning-rate-without-a-schedule" if where is None else "schedule-lasts", evidence)
    )


def _of_ends(rates: np.ndarray, where: str | None, evidence: dict[str, Quantity]) -> Verdict | None:
    """Where the rate is 0, or next to it, for a part of the run at its end or its begin."""
    moving = np.flatnonzero(rates > 0)
    if not len(moving):
        return None
    per, updates = float(evidence["scheduler_steps"].value), len(rates)
    still, enough = updates - 1 - int(moving[-1]), max(FEW, REST * updates)
    if still >= enough:
        share = still / updates
        return _answer(
            "found", "schedule-ends-early", evidence, where=where, waste=share, share=share, per=per, updates=updates
        )
    first = int(moving[0])
    if first >= max(FEW, BEGIN * updates):
        share = first / updates
        return _answer("found", "learning-rate-zero-at-first", evidence, where=where, waste=share, first=first, share=share)
    working = np.flatnonzero(rates > NOTHING * rates.max())
    tiny = updates - 1 - int(working[-1])
    if tiny >= enough and per >= 0.9:
        share = tiny / updates
        return _answer(
            "found", "schedule-decays-to-nothing", evidence, where=where, waste=share, share=share, per=per, updates=updates
        )
    return None


def _rates(run: Run, rank: int) -> np.ndarray:
    """The learning rate of each update of a rank, in order."""
    steps = run.ranks[rank].steps
    return np.array([step.scalar("lr_used") for step in steps if "lr_used" in step.scalars], dtype=np.float64)


def _per_update(run: Run) -> float:
    """Scheduler steps an update on rank 0, by the last count of both."""
    counted = [step.scalar("scheduler_steps") for step in run.ranks[0].steps if "scheduler_steps" in step.scalars]
    updates = sum(step.counts.get("updates", 0) for step in run.ranks[0].steps)
    return counted[-1] / max(1, updates - 1) if counted else 0.0


def _trains_alone(run: Run) -> bool:
    """Whether no gradient is reduced, and the script exchanges nothing in its steps: ranks may try settings."""
    counts = [step.counts for log in run.ranks for step in log.steps]
    return not any(of_step.get("reductions", 0) or of_step.get("exchanged_elements", 0) for of_step in counts)
