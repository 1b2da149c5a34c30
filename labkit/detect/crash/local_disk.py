"""Do checkpoints survive the loss of a node?

A rank that saved, and after a restart finds nothing, kept its checkpoints where they went with the node.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record
from ..verdict import Verdict, answering, either
from .measures import Attempt, attempts, of_step

NAME = "local-disk"
QUESTION = "Are checkpoints lost together with a node?"
_answer = answering(NAME, QUESTION)

FIX = (
    "write checkpoints to storage that every node sees and that outlives each of them; a copy on the node's own disk is for "
    "a quick restart, never the only one"
)


def detect(record: Record) -> Verdict:
    """Compare what each rank had saved with what it found after a restart."""
    run = record.run
    found = attempts(run)
    saved = {rank for attempt in found for rank, _ in attempt.events("save")}
    if not saved:
        return _answer(
            "not_applicable",
            cause="the program recorded no saves",
            fix="record each with probe.event('save', of_step=…, path=…)",
        )
    lost, loads, could_lose = _lost(found)
    evidence = {
        "ranks_that_save": Quantity(len(saved)),
        "loads_after_a_save": Quantity(loads),
        "found_nothing": Quantity(len(lost), "ranks"),
        "paths": Quantity(len(_paths(found)), "places of one checkpoint"),
    }
    where = str(run.fact("keeper_where", "")) or None
    if lost:
        return _answer(
            "found",
            evidence,
            cause=f"rank {', '.join(map(str, lost))} had saved, and after the restart found nothing: the checkpoint went "
            "with the node's disk, and one rank's loss is everybody's",
            fix=FIX,
            where=where,
        )
    if loads == 0:
        return _answer(
            "inconclusive",
            evidence,
            cause="no rank was started again after a save",
            fix=either(
                lab="kill a rank after the first save, with its node's disk (Fault(kind='lose-node', …))",
                script="start again on another node after the first save, and record what is loaded: probe.event('load', …)",
            ),
        )
    if len(_paths(found)) > 1 and not could_lose:
        return _answer(
            "inconclusive",
            evidence,
            cause="each rank keeps its checkpoints at a path of its own, and no node was lost: whether they outlive a node "
            "this run does not show",
            fix=either(
                lab="lose a node on purpose (Fault(kind='lose-node', …)), or keep checkpoints on shared storage",
                script="start again on another node on purpose, or keep checkpoints on shared storage",
            ),
        )
    return _answer("clear", evidence, cause="after each restart every rank found what had been saved")


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
