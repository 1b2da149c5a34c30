"""Do checkpoints survive the loss of a node?

A rank that saved, and after a restart finds nothing, kept its checkpoints where they went with the node.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record
from ..verdict import Verdict, answering
from .measures import Attempt, attempts, of_step

NAME = "local-disk"
QUESTION = "Are checkpoints lost together with a node?"
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Compare what each rank had saved with what it found after a restart."""
    run = record.run
    found = attempts(run)
    saved = {rank for attempt in found for rank, _ in attempt.events("save")}
    if not saved:
        return _answer("not_applicable", "no-saves-recorded")
    lost, loads, could_lose = _lost(found)
    evidence = {
        "ranks_that_save": Quantity(len(saved)),
        "loads_after_a_save": Quantity(loads),
        "found_nothing": Quantity(len(lost), "ranks"),
        "paths": Quantity(len(_paths(found)), "places of one checkpoint"),
    }
    where = str(run.fact("keeper_where", "")) or None
    if lost:
        return _answer("found", "checkpoint-lost-with-its-node", evidence, where=where, ranks=lost)
    if loads == 0:
        return _answer("inconclusive", "no-restart-after-a-save", evidence)
    if len(_paths(found)) > 1 and not could_lose:
        return _answer("inconclusive", "paths-apart-and-no-node-lost", evidence)
    return _answer("clear", "every-rank-found-its-checkpoint", evidence)


def _lost(found: list[Attempt]) -> tuple[list[int], int, bool]:
    """Ranks that found nothing although they had saved; loads that came after a save; whether a node was lost."""
    had: set[int] = set()
    lost: set[int] = set()
    loads, node_lost = 0, False
    for attempt in found:
        for rank, event in attempt.events("load"):
            if rank in had:
                loads += 1
                if int(event.fields.get("had", of_step(event))) == 0:
                    lost.add(rank)
        had |= {rank for rank, _ in attempt.events("save")}
        node_lost |= any(event.fields.get("fault") == "lose-node" for _, event in attempt.events("fault"))
    return sorted(lost), loads, node_lost


def _paths(found: list[Attempt]) -> set[str]:
    """Where the newest checkpoint of the first attempt that saves is, on all its ranks."""
    for attempt in found:
        saves = list(attempt.events("save"))
        if saves:
            newest = max(of_step(event) for _, event in saves)
            return {str(event.fields.get("path", "")) for _, event in saves if of_step(event) == newest}
    return set()
