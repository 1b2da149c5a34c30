"""Stretches in which a rank does nothing because it is gone: killed, or ended so that all ranks can start again."""

from __future__ import annotations

from dataclasses import dataclass

from .schema import RankLog, Run

KILLS = ("kill", "lose-node")
"""Planned faults after which a rank is gone."""
WITH_IT = "ended with it, to start again"


@dataclass
class Dark:
    """A stretch in which a rank is gone.

    Attributes:
        rank: which.
        start_ms: its last sign of life, in milliseconds from the origin of whoever asks.
        word: why, as a person says it.
        end_ms: when the rank was there again; None while it is gone.
    """

    rank: int
    start_ms: float
    word: str
    end_ms: float | None = None


def gone_of_run(run: Run, origin_ns: int) -> list[Dark]:
    """Where ranks were gone between the attempts of a run, and after the last one where a rank came to no end."""
    attempts = (*run.earlier, run.ranks)
    found = []
    for number, logs in enumerate(attempts):
        after = {log.head.rank: _first(log) for later in attempts[number + 1 : number + 2] for log in later}
        for log in logs:
            killed = next((one for one in log.events if one.name == "fault" and one.fields.get("fault") in KILLS), None)
            if killed is None and (log.finished or not log.steps or not run.earlier):
                continue
            start = killed.time_ns if killed else log.steps[-1].end_ns
            end = after.get(log.head.rank)
            word = f"killed in step {killed.step}" if killed else WITH_IT
            found.append(
                Dark(log.head.rank, (start - origin_ns) / 1e6, word, None if end is None else (end - origin_ns) / 1e6)
            )
    return found


def _first(log: RankLog) -> int | None:
    return log.steps[0].start_ns if log.steps else None
