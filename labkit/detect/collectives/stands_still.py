"""Do all ranks come to the same collectives?

A collective returns when all ranks of its group are in it. A rank that left, that took another branch, or that is in another
collective keeps the others waiting until a timeout of minutes or hours, which names none of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...record.quantity import Quantity
from ...record.schema import RankLog, Record, Run
from ..catalogue import Said, said
from ..verdict import Verdict, answering

NAME = "stands-still"
QUESTION = "Do all ranks come to the same collectives?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)


TO_ONE = ("send", "recv", "isend", "irecv", "batch_isend_irecv")
"""Operations between two ranks."""


@dataclass(frozen=True)
class Stand:
    """Where one rank stood when the run was ended, or ended by itself.

    Attributes:
        rank: which.
        ended: whether its script had come to its end before.
        waits_in: what the script called there; "" where unknown.
        where: file:line of the script; "" where unknown.
        in_collective: whether it was in a collective.
        number: of the script's own collectives, which one that was, from 1; 0 where it made none, or DDP did.
        given: type, size and partner of what it gave to the last of them.
        error: that it raised, or the signal that ended its process; "" without one.
        died: whether a signal ended its process.
    """

    rank: int
    ended: bool = False
    waits_in: str = ""
    where: str = ""
    in_collective: bool = False
    number: int = 0
    given: str = ""
    error: str = ""
    died: bool = False

    @property
    def failed(self) -> bool:
        """Whether it raised an error that is its own."""
        return bool(self.error) and not self.in_collective

    @property
    def said(self) -> Said:
        """In words."""
        line = self.where or "?"
        if self.ended:
            return said("stand-ended", rank=self.rank)
        if self.died:
            operation = self.waits_in or "its own code"
            return said("stand-died", rank=self.rank, error=self.error, operation=operation, line=line)
        if self.in_collective and self.error:
            error = self.error.partition(":")[0]
            return said("stand-gave-up", rank=self.rank, operation=self.waits_in, line=line, error=error)
        if self.error:
            return said("stand-raised", rank=self.rank, error=self.error, line=line)
        if self.in_collective:
            operation = f"{self.waits_in} {self.given}".strip() if "wait()" not in self.waits_in else self.waits_in
            return said("stand-in-collective", rank=self.rank, operation=operation, line=line)
        return said("stand-elsewhere", rank=self.rank, function=self.waits_in or "?", line=line)


def stands(run: Run) -> list[Stand]:
    """Where each rank stood, by rank; empty where none had to be ended, and none failed as it waited for another."""
    found = [_of_rank(log) for log in run.ranks]
    return found if any(stand.in_collective or not (stand.ended or stand.error) for stand in found) else []


def _of_rank(log: RankLog) -> Stand:
    last = [event for event in log.events if event.name in ("stood_still", "raised")]
    if not last:  # it came to its end, or left
        return Stand(log.head.rank, ended=True)
    fields: Mapping[str, Any] = last[0].fields  # a script that raised is over, wherever its process stands afterwards
    raised, died = last[0].name == "raised", "died_of" in fields
    if raised and fields.get("waits_in") == "destroy_process_group":
        return Stand(log.head.rank, ended=True)  # its work is done
    return Stand(
        log.head.rank,
        waits_in=str(fields.get("waits_in", "")),
        where=str(fields.get("where", "")),
        in_collective=bool(fields.get("of_others" if raised else "in_collective", False)),
        number=int(fields.get("number", 0)),
        given=str(fields.get("given", "")),
        error=f"{fields.get('error')}: {fields.get('message')}" if raised else str(fields.get("died_of", "")),
        died=died,
    )


def detect(record: Record) -> Verdict:
    """Look at where each rank stood when the run was ended."""
    run = record.run
    if run.world_size == 1:
        return _answer("not_applicable", "one-rank-meets-nobody")
    found = stands(run)
    if not found:
        if run.fact("watched_by") == "doctor" and all(log.finished for log in run.ranks):
            call = _mismatch(run)
            if call is not None:
                place = str(run.fact("loop_where", "")) or None
                return _answer("found", "collectives-do-not-match", where=place, call=call)
            return _answer("clear", "every-rank-came-to-its-end")
        return _answer("not_applicable", "not-seen-standing-still")
    waiting = [stand for stand in found if stand.in_collective]
    updates = [sum(step.counts.get("updates", 0) for step in log.steps) for log in run.ranks]
    evidence = {"waiting": Quantity(len(waiting), f"of {run.world_size} ranks, in a collective")}
    if len(set(updates)) > 1:
        evidence |= {
            "fewest_updates": Quantity(min(updates), "on a rank"),
            "most_updates": Quantity(max(updates), "on another"),
        }
    all_said = [stand.said for stand in found]
    failed = [stand.rank for stand in found if stand.failed]
    if failed:
        return _answer("inconclusive", "ranks-failed-before", evidence, ranks=failed, stands=all_said)
    if not waiting:
        return _answer("inconclusive", "still-outside-collectives", evidence, stands=all_said)
    return _of_waiting(found, waiting, evidence, all_said)


def _of_waiting(found: list[Stand], waiting: list[Stand], evidence: dict[str, Quantity], all_said: list[Said]) -> Verdict:
    where = _place(found)
    left = [stand.rank for stand in found if stand.ended]
    elsewhere = [stand.rank for stand in found if not stand.ended and not stand.in_collective]
    told = {"where": where, "stands": all_said, "waste": 1.0}
    if left:
        return _answer("found", "ranks-left-the-others-waiting", evidence, ranks=left, **told)
    if elsewhere:
        return _answer("found", "ranks-never-came", evidence, ranks=elsewhere, **told)
    if all(stand.waits_in in TO_ONE for stand in waiting) and len({stand.waits_in for stand in waiting}) == 1:
        return _answer("found", "ranks-wait-for-each-other", evidence, **told)
    if len({(stand.waits_in, stand.where) for stand in waiting}) > 1:
        return _answer("found", "ranks-in-different-collectives", evidence, **told)
    numbers = {stand.number for stand in waiting}
    if len(numbers) > 1:
        return _answer("found", "ranks-out-of-step", evidence, most=max(numbers), least=min(numbers), **told)
    if len({stand.given for stand in waiting}) > 1:
        return _answer("found", "ranks-give-different-tensors", evidence, **told)
    return _answer("inconclusive", "all-in-one-collective", evidence, stands=all_said)


def _place(found: list[Stand]) -> str | None:
    """The line that is most likely to be the one that only some ranks come to."""
    waiting = [stand for stand in found if stand.in_collective]
    orders = (
        [stand for stand in found if not stand.in_collective and not stand.ended],
        [stand for stand in waiting if "buffers" in stand.waits_in],  # an evaluation through DDP, on some ranks
        [stand for stand in waiting if stand.waits_in not in ("backward", "barrier")],
        [stand for stand in waiting if stand.waits_in == "barrier"],
        waiting[::-1],
    )
    return next((stand.where for order in orders for stand in order if stand.where), None)


def _mismatch(run: Run) -> int | None:
    """The first call, from 1, that all ranks made as often and that is not the same on all; None without one."""
    of_ranks = [[c for step in log.steps for c in step.series.get("collective_calls", ())] for log in run.ranks]
    if len({len(calls) for calls in of_ranks}) != 1:
        return None
    return next((at for at, calls in enumerate(zip(*of_ranks, strict=True), 1) if len(set(calls)) > 1), None)
