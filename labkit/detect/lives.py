"""A script that resumed within one process: what it read before and after are passes of their own, not one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..record.once import once
from ..record.roles import Role
from ..record.schema import RankLog, Record, Run


def of_one_life(record: Record) -> Record:
    """The record with the longest part of its run between two resumes, for questions about whole passes; itself where
    nothing was resumed.

    Loaders that are made anew count their passes anew. What a resume reads twice is a question of its own.
    """
    return once(record, "one life", lambda: _longest(record))


def _longest(record: Record) -> Record:
    run = record.run
    cuts = sorted({event.step for event in run.ranks[0].events if event.name == "resumed" and _goes_on(event.fields)})
    cuts = [cut for cut in cuts if cut > 0]
    if not cuts:
        return record
    lives = list(zip([0, *cuts], [*cuts, 1 << 62], strict=True))
    counts = [sum(begin <= step.step < end for step in run.ranks[0].steps) for begin, end in lives]
    begin, end = lives[counts.index(max(counts))]
    life: Run = msgspec.structs.replace(run, ranks=tuple(_within(log, begin, end) for log in run.ranks))
    return msgspec.structs.replace(record, runs={**record.runs, str(Role.VARIANT): life})


def _goes_on(fields: Mapping[str, Any]) -> bool:
    return bool(fields["optimizer_given"]) or int(fields["made_step"]) >= 0


def _within(log: RankLog, begin: int, end: int) -> RankLog:
    steps = tuple(step for step in log.steps if begin <= step.step < end)
    events = tuple(event for event in log.events if begin <= event.step < end or event.step < 0)
    return msgspec.structs.replace(log, steps=steps, events=events)
