"""Names in a record that the vocabulary does not have: they are kept, and no question asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..errors import printable
from .schema import RankLog, Record
from .vocabulary import Sort, known, near, unknown_fields

_Name = tuple[Sort, str]


@dataclass(frozen=True, order=True)
class Unknown:
    """A name that the vocabulary does not have.

    Attributes:
        sort: what it names: a fact, a count, …
        name: of a field, after that of its event and a dot.
        like: the known name that it is most like; "" where none is alike.
    """

    sort: Sort
    name: str
    like: str = ""

    def __str__(self) -> str:
        return f"{self.sort} {self.name}" + (f" (did you mean {self.like}?)" if self.like else "")


SHOWN = 8
"""Names that are said at most."""


def said_unknown(names: Sequence[Unknown]) -> str:
    """Which names labkit does not know, as a sentence."""
    said = ", ".join(printable(str(name)) for name in names[:SHOWN])
    more = f", and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"no question asks for these names of your own: {said}{more}"


def unknown_names(record: Record) -> list[Unknown]:
    """All such names of all runs of a record, each once, by sort and name."""
    found: set[_Name] = set()
    for run in record.runs.values():
        for log in (*run.ranks, *(log for logs in run.earlier for log in logs)):
            found.update(_of_rank(log))
        found.update(_each("array", run.arrays))
    return sorted(_unknown(name) for name in found if "." in name[1] or not known(*name))


def _unknown(name: _Name) -> Unknown:
    return Unknown(*name, like="" if "." in name[1] else near(*name))


def _of_rank(log: RankLog) -> Iterator[_Name]:
    yield from _each("fact", log.head.facts)
    yield from _each("digest", log.digests)
    yield from _each("samples", (seen.name for seen in log.seen))
    for event in log.events:
        yield "event", event.name
        for field in unknown_fields(event.name, event.fields):
            yield "event", f"{event.name}.{field}"
    for step in log.steps:
        yield from _each("count", step.counts)
        yield from _each("scalar", step.scalars)
        yield from _each("series", step.series)
        yield from _each("samples", step.digests)
        yield from _each("span", (span.name for span in step.spans))


def _each(sort: Sort, names: Iterable[str]) -> Iterator[_Name]:
    return ((sort, str(name)) for name in names)
