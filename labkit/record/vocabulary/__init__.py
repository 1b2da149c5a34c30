"""All that can be recorded, each named once: what it is, its unit, what it means.

The probe writes under these names, watchers and detectors use them, and docs/records.md is made from them. A script may
use names of its own, and may use these for things of its own. Both are kept, and no question takes them for labkit's:
what does not fit is told apart (`record.own_names`), and a name that is not here is listed as the script's own.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal

from ...errors import shown
from .events import EVENTS
from .facts import FACTS
from .kinds import EventTerm, Kind, Shape, SpanTerm, Term
from .steps import ARRAYS, COUNTS, DIGESTS, INSTANT, LOWEST_EXPONENT, SAMPLES, SCALARS, SERIES, SPANS

__all__ = [
    "ARRAYS",
    "COUNTS",
    "DIGESTS",
    "EVENTS",
    "FACTS",
    "INSTANTS",
    "LOWEST_EXPONENT",
    "SAMPLES",
    "SCALARS",
    "SERIES",
    "SPANS",
    "TABLES",
    "EventTerm",
    "Kind",
    "Shape",
    "Sort",
    "SpanTerm",
    "Term",
    "event_misfit",
    "fact_misfit",
    "known",
    "near",
    "unknown_fields",
]

Sort = Literal["fact", "count", "scalar", "series", "span", "event", "samples", "digest", "array"]

TABLES: Mapping[Sort, Mapping[str, Term | EventTerm]] = {
    "fact": FACTS,
    "count": COUNTS,
    "scalar": SCALARS,
    "series": SERIES,
    "span": SPANS,
    "event": EVENTS,
    "samples": SAMPLES,
    "digest": DIGESTS,
    "array": ARRAYS,
}
"""The whole vocabulary, by the sort of thing that a name is."""

INSTANTS = frozenset(name for name, term in SERIES.items() if term.unit == INSTANT)
"""Series that hold moments of a clock."""


@lru_cache(maxsize=4096)
def known(sort: Sort, name: str) -> bool:
    """Whether the vocabulary has a name of this sort."""
    table = TABLES[sort]
    return name in table or any(name.startswith(key[:-1]) for key in table if key.endswith("*"))


def near(sort: Sort, name: str) -> str:
    """The name of this sort that is most like one that is not known; empty where none is alike."""
    return next(iter(difflib.get_close_matches(name, [key for key in TABLES[sort] if "*" not in key], 1, 0.8)), "")


def fact_misfit(name: str, value: Any) -> str:
    """How a declared value differs from what labkit takes the name for; empty where it does not, or the name is free."""
    term = FACTS.get(name)
    if term is None or term.kind.fits(value):
        return ""
    return f"{name} is declared as {shown(value)}, and labkit reads it as {term.kind.words}"


def event_misfit(name: str, fields: Mapping[str, Any]) -> str:
    """How an event's fields differ from all that labkit notes under its name; empty where they do not."""
    shapes = EVENTS[name].shapes if name in EVENTS else ()
    wrongs = [_wrong(shape, fields) for shape in shapes]
    return "" if not shapes or "" in wrongs else wrongs[0]


def unknown_fields(name: str, fields: Iterable[str]) -> list[str]:
    """Fields of an event of labkit's that the vocabulary does not have."""
    shapes = EVENTS[name].shapes if name in EVENTS else ()
    if not shapes or any(shape.more for shape in shapes):
        return []
    return sorted(set(fields) - {field for shape in shapes for field in shape.fields})


def _wrong(shape: Shape, fields: Mapping[str, Any]) -> str:
    for name, term in shape.fields.items():
        if name not in fields:
            if name in shape.has:
                return f"it has no field {name} ({term.kind.words})"
        elif not term.kind.fits(fields[name]):
            return f"its field {name} is {shown(fields[name])}, where labkit reads {term.kind.words}"
    return ""
