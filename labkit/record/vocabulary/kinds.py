"""What a recorded value can be, and the noun that a name of the vocabulary is described by."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..schema import Lane


@dataclass(frozen=True)
class Kind:
    """What a value is taken for, in words, and whether one is such a value."""

    words: str
    fits: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: Any) -> bool:
    return _is_number(value) and value == int(value) and abs(value) <= 2**53


WHOLE = Kind("a whole number", _is_whole)
COUNT = Kind("a whole number from 0 on", lambda value: _is_whole(value) and value >= 0)
FROM_ONE = Kind("a whole number from 1 on", lambda value: _is_whole(value) and value >= 1)
NUMBER = Kind("a number", _is_number)
AMOUNT = Kind("a number from 0 on", lambda value: _is_number(value) and value >= 0)
WORD_OR_NUMBER = Kind("a number, or nan or inf", lambda value: _is_number(value) or value in ("nan", "inf", "-inf"))
TEXT = Kind("text", lambda value: isinstance(value, str))
FLAG = Kind("true or false", lambda value: isinstance(value, bool) or value in (0, 1))
ANY = Kind("any value", lambda value: True)
HASHES = Kind("a hash a sample", lambda value: True)
HASH = Kind("a hash", lambda value: isinstance(value, str))
ARRAY = Kind("an array", lambda value: True)
INTERVAL = Kind("an interval", lambda value: True)


@dataclass(frozen=True)
class Term:
    """One name of the vocabulary: what its value is, its unit ("" where it has none), and its meaning in a few words."""

    kind: Kind
    unit: str
    means: str


@dataclass(frozen=True)
class SpanTerm(Term):
    """A name of intervals.

    Attributes:
        lanes: on which it is recorded.
    """

    lanes: tuple[Lane, ...] = ()


@dataclass(frozen=True)
class Shape:
    """Fields of an event: those that it has, and those that it may have.

    Attributes:
        more: what further fields are, by names that are the program's own; "" where there are none.
    """

    has: Mapping[str, Term]
    may_have: Mapping[str, Term] = field(default_factory=dict)
    more: str = ""

    @property
    def fields(self) -> dict[str, Term]:
        """All of them, by name."""
        return {**self.has, **self.may_have}


@dataclass(frozen=True)
class EventTerm:
    """A name of events: its meaning, and what fields it has; where several programs use the name, a shape each."""

    means: str
    shapes: tuple[Shape, ...]
