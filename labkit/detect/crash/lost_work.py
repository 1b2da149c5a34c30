"""Does a crash send the run back further than it has to go?

Steps since the newest checkpoint are lost by any crash; how many, the interval decides. To go back further means that there
was no checkpoint, or that it was not used.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record
from ..verdict import Verdict, answering
from .measures import Crash, crashes, saves

NAME = "lost-work"
QUESTION = "Does a crash undo more than the work since the newest checkpoint?"
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Compare where each attempt began with what had been done and saved before it."""
    run = record.run
    happened = crashes(run)
    if not happened:
        return _answer("not_applicable", "no-step-after-the-crash" if run.attempts > 1 else "never-crashed")
    evidence = _evidence(record, happened)
    known = {"where": str(run.fact("keeper_where", "")) or None, "waste": _waste(record, happened)}
    further = [crash for crash in happened if crash.resumed_at < min(crash.newest_save, crash.done)]
    if further:
        saved, resumed_at = further[0].newest_save, further[0].resumed_at
        return _answer("found", "newest-checkpoint-not-used", evidence, **known, saved=saved, resumed_at=resumed_at)
    nothing = [crash for crash in happened if crash.newest_save == 0 and crash.lost_steps > 0]
    if nothing and not saves(run):
        resumed_at, lost = nothing[0].resumed_at, nothing[0].lost_steps
        return _answer("found", "nothing-was-saved", evidence, **known, resumed_at=resumed_at, lost=lost)
    if nothing:
        return _answer("inconclusive", "crash-before-the-first-checkpoint", evidence, lost=nothing[0].lost_steps)
    lost = sum(crash.lost_steps for crash in happened)
    return _answer("clear", "back-to-the-newest-checkpoint", evidence, lost=lost)


def _waste(record: Record, happened: list[Crash]) -> float | None:
    """Share of the steps done, by all attempts together, that had to be done again."""
    last = max((log.steps[-1].step + 1 for log in record.run.ranks if log.steps), default=0)
    lost = sum(crash.lost_steps for crash in happened)
    return lost / (last + lost) if last + lost else None


def _evidence(record: Record, happened: list[Crash]) -> dict[str, Quantity]:
    """Of the run as the measures have it; what is of one crash is of the one that lost most."""
    worst = max(happened, key=lambda crash: crash.lost_steps)
    return {
        "crashes": Quantity(len(happened)),
        "lost_steps": Quantity(sum(crash.lost_steps for crash in happened), "steps done again"),
        "done_at_crash": Quantity(worst.done, "steps"),
        "newest_save": Quantity(worst.newest_save, "steps held, 0 is none"),
        "worst_resumed_at": Quantity(worst.resumed_at, "steps done"),
        "resumed_at": Quantity(happened[-1].resumed_at, "steps done"),
        "restart": Quantity(max(crash.restart_s for crash in happened), "s, the longest"),
    }
