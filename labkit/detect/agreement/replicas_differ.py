"""Do all ranks hold the same weights?

Ranks that train one model together end each update with the same weights, to the bit: they start equal, and every one
applies the same gradient. What differs after the first update never met; what differs later drifted.

Weights that differ are not always wrong. Parts of a model (tensor or pipeline parallelism, experts) have collectives of
their own, and averaging weights now and then (local SGD) makes them equal again. So it is found only where nothing that
ranks exchange could ever make them equal, or where DDP reduced every gradient and they differ all the same.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..verdict import Verdict, answering
from .measures import Held, held

NAME = "replicas-differ"
QUESTION = "Do all ranks hold the same weights?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Compare the ranks' weights after each update that was looked at."""
    run = record.run
    if run.world_size == 1:
        return _answer("not_applicable", "one-rank-holds-one-model")
    if run.fact("group_size") == 0:
        where = str(run.fact("loop_where", "")) or None
        waste = 1 - 1 / run.world_size
        return _answer("found", "ranks-never-joined", where=where, waste=waste, ranks=run.world_size)
    looked = held(run)
    if not looked:
        return _answer("not_applicable", "no-weights-compared")
    compared = [one for one in looked if one.comparable]
    if not compared:
        return _answer("not_applicable", "ranks-hold-parts")
    differ = [one for one in compared if not one.equal()]
    evidence = {
        "compared": Quantity(len(compared), "times, after updates"),
        "differ": Quantity(len(differ), "of them"),
    }
    if not differ:
        return _answer("clear", "weights-equal", evidence)
    return _of_difference(run, compared, differ, evidence)


def _of_difference(run: Run, compared: list[Held], differ: list[Held], evidence: dict[str, Quantity]) -> Verdict:
    first = differ[0]
    evidence = evidence | {"first_update": Quantity(first.update)}
    where = str(run.fact("loop_where", "")) or None
    of_model = [one for one in compared if one.model == first.model]
    if any(one.equal() for one in of_model if one.update > first.update):
        return _answer("inconclusive", "weights-meet-again", evidence, update=first.update)
    reduced, exchanged = _reduced(run), _exchanged(run)
    if reduced:
        return _answer("found", "weights-drift-under-ddp", evidence, where=where, update=first.update)
    if exchanged:
        return _answer("inconclusive", "weights-differ-and-ranks-talk", evidence, update=first.update)
    reason = "ddp-bypassed" if run.fact("ddp_world_size") is not None else "nothing-is-reduced"
    waste = 1 - 1 / run.world_size
    return _answer("found", reason, evidence, where=where, waste=waste, ranks=run.world_size)


def _reduced(run: Run) -> bool:
    """Whether DDP reduced gradients in every update that was recorded, on every rank."""
    updates = [step for log in run.ranks for step in log.steps if step.counts.get("updates")]
    return bool(updates) and all(step.counts.get("reductions", 0) for step in updates)


def _exchanged(run: Run) -> bool:
    """Whether the script called collectives by itself while it trained, or DDP reduced now and then."""
    return any(
        step.counts.get("script_collectives", 0) or step.counts.get("reductions", 0)
        for log in run.ranks
        for step in log.steps
    )
