"""Arrays that are made once and kept while there is room: what epochs are asked again and again. Pure; no torch, no I/O."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

import numpy as np

MOST_BYTES = 64 * 2**20
"""Of the arrays of all epochs of a run together; what was used longest ago is made again when it is asked for."""

Kind = TypeVar("Kind")


class Keeping:
    """Arrays by whose they are and by name; together no more than a bound."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._held = most_bytes, 0
        self._values: OrderedDict[tuple[object, str], tuple[Any, int]] = OrderedDict()

    def get(self, of: object, name: str, make: Callable[[], Kind]) -> Kind:
        """What was made before, or what `make` makes."""
        key = (of, name)
        if key in self._values:
            self._values.move_to_end(key)
            return self._values[key][0]
        value = make()
        size = _bytes_of(value)
        if size <= self._most:
            self._values[key] = value, size
            self._held += size
        while self._held > self._most:
            self._held -= self._values.popitem(last=False)[1][1]
        return value


class kept(Generic[Kind]):
    """A property whose value the object's `keeping` holds while there is room. Objects are told apart by identity."""

    def __init__(self, make: Callable[[Any], Kind]) -> None:
        self._make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, of: None, owner: type) -> kept[Kind]: ...
    @overload
    def __get__(self, of: object, owner: type) -> Kind: ...
    def __get__(self, of: Any, owner: type) -> Any:
        return self if of is None else of.keeping.get(of, self._name, lambda: self._make(of))


def _bytes_of(value: Any) -> int:
    """Of an array, of several, or of batches, whose keys count for as much as an array of its own."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    parts = (value.keys, value.starts) if hasattr(value, "starts") else value
    return sum(part.nbytes for part in parts)
