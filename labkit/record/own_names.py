"""A script's own names told apart from labkit's, so that what it means by them costs no question its answer.

An event called `save` without the fields of labkit's, a `batch_size` of 0: each stays in the record, and no question takes
it for what labkit means by that name. Who asks for it all the same is heard, so that the answer can say why it is lacking.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import msgspec

from .once import once
from .schema import Event, RankLog, Record, Run
from .vocabulary import event_misfit, fact_misfit

_heard: ContextVar[set[str] | None] = ContextVar("heard", default=None)


def _ask_for(name: str) -> None:
    asked = _heard.get()
    if asked is not None:
        asked.add(name)


@contextmanager
def listening() -> Iterator[set[str]]:
    """Collect the names of a script's own that are asked for as if they were labkit's, while the context lasts."""
    asked: set[str] = set()
    token = _heard.set(asked)
    try:
        yield asked
    finally:
        _heard.reset(token)


class _OwnName(str):
    """The name of an event that is the script's own: no name that labkit looks for equals it."""

    def __eq__(self, other: object) -> bool:
        if str.__eq__(self, other) is True:
            _ask_for(str(self))
        return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


class _Facts(dict):
    """The facts that fit. `own` names those that the script declared and labkit cannot take."""

    own: frozenset[str] = frozenset()

    def __contains__(self, name: object) -> bool:
        if name in self.own:
            _ask_for(str(name))
        return super().__contains__(name)

    def get(self, name: Any, default: Any = None) -> Any:
        return super().get(name, default) if name in self else default


@dataclass(frozen=True)
class Apart:
    """A record as questions see it.

    Attributes:
        record: the same one where nothing is the script's own.
        facts, events: by name: in which way it differs from labkit's; of the first that does.
        also_fitting: names of which there are events that fit as well.
    """

    record: Record
    facts: dict[str, str]
    events: dict[str, str]
    also_fitting: frozenset[str] = frozenset()

    def why(self, heard: set[str]) -> str:
        """In which way what was asked for is not labkit's; empty where all was."""
        return "; ".join([said for names in (self.events, self.facts) for name, said in names.items() if name in heard])

    def remedy(self, heard: set[str]) -> str:
        """What to do, for each of them."""
        events = [name for name in self.events if name in heard]
        parts = [f"call your own event {name} something else, or give it the fields that labkit reads" for name in events]
        if any(name in heard for name in self.facts):
            parts.append("declare it so, or leave it out")
        return "; ".join(parts)

    def is_evidence(self, heard: set[str]) -> bool:
        """Whether an answer would rest on the lack of events that are there, and are not labkit's."""
        return any(name in heard and name not in self.also_fitting for name in self.events)


def apart(record: Record) -> Apart:
    """Tell a record's own names from labkit's. Looked at once for each record."""
    return once(record, "apart", lambda: _told_apart(record))


def _told_apart(record: Record) -> Apart:
    facts: dict[str, str] = {}
    events: dict[str, str] = {}
    fitting: set[str] = set()
    runs = {role: _of_run(run, facts, events, fitting) for role, run in record.runs.items()}
    if not facts and not events:
        return Apart(record, facts, events)
    return Apart(msgspec.structs.replace(record, runs=runs), facts, events, frozenset(fitting))


def _of_run(run: Run, facts: dict[str, str], events: dict[str, str], fitting: set[str]) -> Run:
    ranks = tuple(_of_rank(log, facts, events, fitting) for log in run.ranks)
    earlier = tuple(tuple(_of_rank(log, facts, events, fitting) for log in logs) for logs in run.earlier)
    return msgspec.structs.replace(run, ranks=ranks, earlier=earlier)


def _of_rank(log: RankLog, facts: dict[str, str], events: dict[str, str], fitting: set[str]) -> RankLog:
    where = f"rank {log.head.rank}"
    own = {name: said for name, value in log.head.facts.items() if (said := fact_misfit(name, value))}
    kept = _Facts({name: value for name, value in log.head.facts.items() if name not in own})
    kept.own = frozenset(own)
    for name, said in own.items():
        facts.setdefault(name, f"{said} ({where})")
    told = tuple(_of_event(event, where, events, fitting) for event in log.events)
    if not own and all(new is old for new, old in zip(told, log.events, strict=True)):
        return log
    return msgspec.structs.replace(log, head=msgspec.structs.replace(log.head, facts=kept), events=told)


def _of_event(event: Event, where: str, events: dict[str, str], fitting: set[str]) -> Event:
    wrong = event_misfit(event.name, event.fields)
    if not wrong:
        fitting.add(event.name)
        return event
    events.setdefault(
        event.name, f"the event {event.name} of {where}, step {event.step}, is not what labkit notes by this name: {wrong}"
    )
    return msgspec.structs.replace(event, name=_OwnName(event.name))
