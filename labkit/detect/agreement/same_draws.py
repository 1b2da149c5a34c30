"""Do ranks train on random numbers of their own?

One seed for all ranks makes their weights equal at the start, which is right. If nobody seeds them apart afterwards, noise,
latent vectors and time steps are the same on every rank: as many ranks learn from as much randomness as one.
"""

from __future__ import annotations

from ...record.columns import NOT_HASHED
from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..verdict import Verdict, answering
from .measures import UNREAD, held

NAME = "same-draws"
QUESTION = "Do ranks train on random numbers of their own?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

ENOUGH = 4
"""Calls that are compared before anything is said."""

Place = tuple[int, int]
"""A model, and which of the tensors that it is called with."""


def detect(record: Record) -> Verdict:
    """Compare what models are called with in training, call by call."""
    run = record.run
    if run.world_size == 1:
        return _answer("not_applicable", "one-rank-draws-alone")
    places = _places(run)
    judged = {place: tokens for place, tokens in places.items() if len(tokens) >= ENOUGH}
    if not judged:
        return _answer("not_applicable", "no-inputs-compared")
    if _shares_a_batch(run):
        return _answer("not_applicable", "ranks-share-a-batch")
    alike = [place for place, tokens in judged.items() if all(len(set(of_ranks)) == 1 for of_ranks in tokens)]
    changing = [place for place in alike if len({of_ranks[0] for of_ranks in judged[place]}) == len(judged[place])]
    evidence = {
        "compared": Quantity(len(judged), "tensors that models are called with"),
        "alike": Quantity(len(alike), "of them, the same on all ranks in every call"),
    }
    if not changing:
        return _answer("clear", "ranks-draw-apart", evidence)
    if _samples_alike(run):
        return _answer("not_applicable", "ranks-read-the-same", evidence)
    where = str(run.fact("loop_where", "")) or None
    calls = len(judged[changing[0]])
    if len(alike) < len(judged) or _samples_alike(run) is False:
        return _answer("found", "ranks-draw-the-same", evidence, where=where, calls=calls)
    return _answer("not_applicable", "ranks-read-the-same", evidence)


def _places(run: Run) -> dict[Place, list[tuple[str, ...]]]:
    """By place: the tokens of all ranks, of each call in which every rank has one."""
    of_ranks = [
        {
            (int(e.fields["model"]), at, int(e.fields["call"])): token
            for e in log.events
            if e.name == "inputs"
            for at, token in enumerate(str(e.fields["each"]).split())
            if token != UNREAD
        }
        for log in run.ranks
    ]
    found: dict[Place, list[tuple[str, ...]]] = {}
    for model, at, call in sorted(set.intersection(*map(set, of_ranks))):
        found.setdefault((model, at), []).append(tuple(of_rank[model, at, call] for of_rank in of_ranks))
    return found


def _shares_a_batch(run: Run) -> bool:
    """Whether ranks hold parts of one model, and so must be given the same batch."""
    events = [event for log in run.ranks for event in log.events]
    if any(step.counts.get("exchanged_in_forward", 0) for log in run.ranks for step in log.steps):
        return True
    sharded = any(event.name == "replica" and event.fields.get("sharded") for event in events)
    return (sharded and not any(event.name == "sharding" for event in events)) or not any(
        one.comparable for one in held(run)
    )


def _samples_alike(run: Run) -> bool | None:
    """Whether all ranks read the same samples in most steps; None where no loader was seen."""
    steps = [
        of_ranks
        for of_ranks in zip(*(log.steps for log in run.ranks), strict=False)
        if all(step.digests.get("train") and step.digests["train"][0] != NOT_HASHED for step in of_ranks)
    ]
    if not steps:
        return None
    same = sum(len({tuple(sorted(step.digests["train"])) for step in of_ranks}) == 1 for of_ranks in steps)
    return 2 * same > len(steps)
