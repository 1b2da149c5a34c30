"""Does the learning rate follow its schedule to the end of the run?

A schedule counts its own steps. Where it is stepped W or K times an update (once a rank, once a micro-batch), it is through
long before the run is, and the rest of the run changes nothing. No error is raised; the loss is flat, as at the end of any
training.
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..verdict import Verdict, answering

NAME = "learning-rate-schedule"
QUESTION = "Does the learning rate last as long as the run?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

REST, FEW = 0.1, 5
"""Share of the run, and updates, at the end for which a rate of 0 is no matter of where the last step falls."""

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
        at = int(np.argmax(np.any([of_rank != rates[0] for of_rank in rates], axis=0)))
        return _answer("found", "learning-rate-differs-between-ranks", evidence, where=where, update=at)
    if len(rates[0]) < ENOUGH:
        return _answer("inconclusive", "too-few-learning-rates", evidence, updates=len(rates[0]))
    return _of_end(rates[0], where, evidence)


def _of_end(rates: np.ndarray, where: str | None, evidence: dict[str, Quantity]) -> Verdict:
    moving = np.flatnonzero(rates > 0)
    still = len(rates) - 1 - int(moving[-1]) if len(moving) else len(rates)
    if len(moving) and still >= max(FEW, REST * len(rates)):
        per = float(evidence["scheduler_steps"].value)
        share = still / len(rates)
        return _answer(
            "found", "schedule-ends-early", evidence, where=where, waste=share, share=share, per=per, updates=len(rates)
        )
    if where is None:
        return _answer("clear", "learning-rate-without-a-schedule", evidence)
    return _answer("clear", "schedule-lasts", evidence)


def _rates(run: Run, rank: int) -> np.ndarray:
    """The learning rate of each update of a rank, in order."""
    steps = run.ranks[rank].steps
    return np.array([step.scalar("lr_used") for step in steps if "lr_used" in step.scalars], dtype=np.float64)


def _per_update(run: Run) -> float:
    """Scheduler steps an update on rank 0, by the last count of both."""
    counted = [step.scalar("scheduler_steps") for step in run.ranks[0].steps if "scheduler_steps" in step.scalars]
    updates = sum(step.counts.get("updates", 0) for step in run.ranks[0].steps)
    return counted[-1] / max(1, updates - 1) if counted else 0.0
