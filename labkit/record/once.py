"""What is made of a noun once, and kept with it: a record does not change once it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .schema import RankLog, Record, Run

Kind = TypeVar("Kind")


def once(of: RankLog | Run | Record, name: str, make: Callable[[], Kind]) -> Kind:
    """What was made of a noun before under this name, or what `make` makes now. Nobody may change it."""
    made = vars(of).setdefault("made once", {})
    if name not in made:
        made[name] = make()
    return made[name]
