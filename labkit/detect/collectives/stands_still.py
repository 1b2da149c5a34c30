"""Do all ranks come to the same collectives?

A collective returns when all ranks of its group are in it. A rank that left, that took another branch, or that is in another
collective keeps the others waiting until a timeout of minutes or hours, which names none of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..catalogue import Said, said
from ..verdict import Verdict, answering

NAME = "stands-still"
QUESTION = "Do all ranks come to the same collectives?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)


@dataclass(frozen=True)
class Stand:
    """Where one rank stood when the run was ended.

    Attributes:
        rank: which.
        ended: whether its script had ended before.
        waits_in: what the script called there; "" where unknown.
        where: file:line of the script; "" where unknown.
        in_collective: whether it was in a collective.
        number: of the script's own collectives, which one that was, from 1; 0 where it made none, or DDP did.
    """

    rank: int
    ended: bool
    waits_in: str
    where: str
    in_collective: bool
    number: int

    @property
    def said(self) -> Said:
        """In words."""
        if self.ended:
            return said("stand-ended", rank=self.rank)
        if self.in_collective:
            return said("stand-in-collective", rank=self.rank, operation=self.waits_in, line=self.where or "?")
        return said("stand-elsewhere", rank=self.rank, function=self.waits_in or "?", line=self.where or "?")


def stands(run: Run) -> list[Stand]:
    """Where each rank stood, by rank; empty where the run was not ended for standing still."""
    found = []
    for log in run.ranks:
        events = [event for event in log.events if event.name == "stood_still"]
        if events:
            found.append(_stand(log.head.rank, events[-1].fields))
        else:  # it came to its end, was killed, or left
            found.append(Stand(log.head.rank, True, "", "", False, 0))
    return found if any(not stand.ended for stand in found) else []


def _stand(rank: int, fields: Mapping[str, Any]) -> Stand:
    return Stand(
        rank,
        False,
        str(fields.get("waits_in", "")),
        str(fields.get("where", "")),
        bool(fields.get("in_collective", False)),
        int(fields.get("number", 0)),
    )


def detect(record: Record) -> Verdict:
    """Look at where each rank stood when the run was ended."""
    run = record.run
    if run.world_size == 1:
        return _answer("not_applicable", "one-rank-meets-nobody")
    found = stands(run)
    if not found:
        if run.fact("watched_by") == "doctor" and all(log.finished for log in run.ranks):
            return _answer("clear", "every-rank-came-to-its-end")
        return _answer("not_applicable", "not-seen-standing-still")
    waiting = [stand for stand in found if stand.in_collective]
    evidence = {"waiting": Quantity(len(waiting), f"of {run.world_size} ranks, in a collective")}
    all_said = [stand.said for stand in found]
    if not waiting:
        return _answer("inconclusive", "still-outside-collectives", evidence, stands=all_said)
    where = next((stand.where for stand in found if not stand.in_collective and not stand.ended), waiting[-1].where) or None
    left = [stand.rank for stand in found if stand.ended]
    elsewhere = [stand.rank for stand in found if not stand.ended and not stand.in_collective]
    if left:
        return _answer(
            "found", "ranks-left-the-others-waiting", evidence, where=where, ranks=left, stands=all_said, waste=1.0
        )
    if elsewhere:
        return _answer("found", "ranks-never-came", evidence, where=where, ranks=elsewhere, stands=all_said, waste=1.0)
    if len({(stand.waits_in, stand.where) for stand in waiting}) > 1:
        return _answer("found", "ranks-in-different-collectives", evidence, where=where, stands=all_said, waste=1.0)
    numbers = {stand.number for stand in waiting}
    if len(numbers) > 1:
        return _answer(
            "found",
            "ranks-out-of-step",
            evidence,
            where=where,
            stands=all_said,
            most=max(numbers),
            least=min(numbers),
            waste=1.0,
        )
    return _answer("inconclusive", "all-in-one-collective", evidence, stands=all_said)
