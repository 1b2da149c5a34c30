"""Does a crash send the run back further than it has to go?

Steps since the newest checkpoint are lost by any crash; how many, the interval decides. To go back further means that there
was no checkpoint, or that it was not used.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record
from ...words import plural
from ..verdict import Verdict, answering, either
from .measures import Crash, crashes, saves

NAME = "lost-work"
QUESTION = "Does a crash send the run back further than to its newest checkpoint?"
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Compare where each attempt began with what had been done and saved before it."""
    run = record.run
    happened = crashes(run)
    if not happened:
        what = "no attempt came to a first step after a crash" if run.attempts > 1 else "the run was not interrupted"
        return _answer(
            "not_applicable",
            cause=f"{what}, so nothing was lost yet",
            fix=either(
                lab="kill a rank on purpose (Fault(kind='kill', rank=0, step=…)) and let the launcher start again",
                script="kill a rank on purpose and let the launcher start again; rank 0 then writes "
                "rank-00000.attempt1.jsonl, with Probe(…, attempt=1) and probe.resume_at(step)",
            ),
        )
    evidence = _evidence(record, happened)
    where = str(run.fact("keeper_where", "")) or None
    waste = _waste(record, happened)
    further = [crash for crash in happened if crash.resumed_at < min(crash.newest_save, crash.done)]
    if further:
        crash = further[0]
        return _answer(
            "found",
            evidence,
            cause=f"a checkpoint of {plural(crash.newest_save, 'step')} was complete, and after the crash the run began "
            f"again at step {crash.resumed_at}: the checkpoint was lost with its node, or not used",
            fix="write checkpoints to storage that outlives the node and that every rank can read, and have one rank decide "
            "for all which of them to load",
            where=where,
            waste=waste,
        )
    nothing = [crash for crash in happened if crash.newest_save == 0 and crash.lost_steps > 0]
    if nothing and not saves(run):
        return _answer(
            "found",
            evidence,
            cause=f"the crash sent the run back to step {nothing[0].resumed_at}: {plural(nothing[0].lost_steps, 'step')} "
            "done again, for nothing had been saved",
            fix="save model, optimizer, scheduler, scaler, random generators and place in the data every so often, aside "
            "and renamed when complete (labkit.workloads.checkpoint.Checkpointer)",
            where=where,
            waste=waste,
        )
    if nothing:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"the crash came before the first checkpoint was complete: {plural(nothing[0].lost_steps, 'step')} lost, "
            "as must be",
            fix="let the crash come after a checkpoint, or save sooner",
        )
    lost = sum(crash.lost_steps for crash in happened)
    return _answer(
        "clear", evidence, cause=f"each crash sent the run back to its newest checkpoint: {plural(lost, 'step')} done again"
    )


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
