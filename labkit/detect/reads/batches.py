"""Batches of keys behind one another in one array, and what is asked of all of them at once. Pure; no torch, no I/O."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import numpy as np
import xxhash


class Batches(Sequence[np.ndarray]):
    """What one rank, or all together, read step by step.

    Attributes:
        keys: of all steps, in order.
        starts: step k read keys[starts[k] : starts[k + 1]]; starts[0] is 0.
    """

    __slots__ = ("keys", "starts")

    def __init__(self, keys: np.ndarray, starts: np.ndarray) -> None:
        self.keys, self.starts = keys, starts

    @staticmethod
    def none(dtype: np.dtype) -> Batches:
        """No step at all."""
        return Batches(np.empty(0, dtype), np.zeros(1, np.int64))

    @property
    def sizes(self) -> np.ndarray:
        """[steps] how many each step read."""
        return np.diff(self.starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[np.ndarray]:
        starts = self.starts.tolist()
        return (self.keys[a:b] for a, b in itertools.pairwise(starts))

    @overload
    def __getitem__(self, at: int) -> np.ndarray: ...
    @overload
    def __getitem__(self, at: slice) -> Batches: ...
    def __getitem__(self, at: int | slice) -> np.ndarray | Batches:
        if isinstance(at, slice):
            first, last, stride = at.indices(len(self))
            assert stride == 1, "steps in a row"
            starts = self.starts[first : max(first, last) + 1]
            return Batches(self.keys[starts[0] : starts[-1]], starts - starts[0])
        place = range(len(self))[at]
        return self.keys[self.starts[place] : self.starts[place + 1]]

    def taken(self, places: np.ndarray) -> Batches:
        """Some of the steps, in the order given; without a copy where they are in a row."""
        if not len(places):
            return self[:0]
        first, last = int(places[0]), int(places[-1])
        if last - first == len(places) - 1 and (len(places) == 1 or (np.diff(places) == 1).all()):
            return self[first : last + 1]
        return Batches(self.keys[_spread(self.starts[places], self.sizes[places])], starts_of(self.sizes[places]))


def starts_of(sizes: np.ndarray) -> np.ndarray:
    """Where each of several parts begins that lie behind one another, and where the last one ends."""
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def _spread(begins: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The places begins[0], begins[0] + 1, … of the first part, then those of the second, and so on."""
    return np.repeat(begins - starts_of(sizes)[:-1], sizes) + np.arange(int(sizes.sum()))


def distinct(keys: np.ndarray) -> np.ndarray:
    """The different keys, sorted. Sorting takes a fraction of the time of numpy's hashing where there are millions."""
    ordered = np.sort(keys)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered


def together(of_ranks: Sequence[Batches], dtype: np.dtype) -> Batches:
    """The batches of all ranks at each step as one; a rank that has no more steps reads nothing."""
    if len(of_ranks) == 1:
        return of_ranks[0]
    sizes = sizes_of(of_ranks, absent=0)
    starts = starts_of(sizes.sum(axis=0))
    keys = np.empty(int(starts[-1]), dtype)
    begins = starts[:-1].copy()
    for own, of_rank in zip(sizes, of_ranks, strict=True):
        keys[_spread(begins, own)] = of_rank.keys
        begins += own
    return Batches(keys, starts)


def sizes_of(of_ranks: Sequence[Batches], absent: int) -> np.ndarray:
    """[rank, step] how many each rank read at each step; `absent` where it has no such step."""
    sizes = np.full((len(of_ranks), max((len(of_rank) for of_rank in of_ranks), default=0)), absent, np.int64)
    for own, of_rank in zip(sizes, of_ranks, strict=True):
        own[: len(of_rank)] = of_rank.sizes
    return sizes


def distinct_in_each(batches: Batches) -> np.ndarray:
    """[steps] how many different keys each step read."""
    found = np.zeros(len(batches), np.int64)
    for places, rows in by_size(batches):
        ordered = np.sort(rows, axis=1)
        found[places] = 1 + (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1)
    return found


def by_size(batches: Batches) -> Iterable[tuple[np.ndarray, np.ndarray]]:
    """Steps that read equally many: their places, and what they read [step, sample]; not those that read nothing."""
    sizes = batches.sizes
    order = np.argsort(sizes, kind="stable")
    cuts = np.flatnonzero(np.diff(sizes[order])) + 1
    for places in np.split(order, cuts):
        if len(places) and sizes[places[0]]:
            yield places, batches.taken(places).keys.reshape(len(places), -1)


def equal_steps(one: Batches, other: Batches) -> np.ndarray:
    """[steps that both have] whether both read the same keys in the same order."""
    count = min(len(one), len(other))
    same = one.sizes[:count] == other.sizes[:count]
    places = np.flatnonzero(same)
    own, others = one.taken(places), other.taken(places)
    apart = np.concatenate([[0], np.cumsum(own.keys != others.keys)])
    same[places] = apart[own.starts[1:]] == apart[own.starts[:-1]]
    return same


def counted(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the different keys, sorted; how often each is there)."""
    ordered = np.sort(keys)
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(ordered) else np.empty(0, np.int64)
    return ordered[first], np.diff(np.append(first, len(ordered)))


def print_of(*arrays: np.ndarray) -> bytes:
    """A hash of 128 bits that stands for some arrays: equal ones are equal arrays."""
    state = xxhash.xxh3_128()
    for array in arrays:
        state.update(np.int64(len(array)).tobytes())
        state.update(np.ascontiguousarray(array).data)
    return state.digest()


def grouped(*columns: np.ndarray) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """(value of each column, the places at which they have these values, rising), by rising values."""
    if not len(columns[0]):
        return
    order = np.lexsort(columns[::-1])
    rows = [column[order] for column in columns]
    new = np.flatnonzero(np.logical_or.reduce([np.diff(row) != 0 for row in rows])) + 1
    for places, first in zip(np.split(order, new), [0, *new.tolist()], strict=True):
        yield tuple(int(row[first]) for row in rows), places


def find(keys: np.ndarray, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(places in `among`, which is sorted and has each once, of those keys that are there; which keys these are)."""
    places = np.searchsorted(among, keys)
    inside = places < len(among)
    inside[inside] = among[places[inside]] == keys[inside]
    return places[inside], inside


def names_whatever_order(batches: Batches) -> list[bytes]:
    """By step: a hash of 128 bits of what it read, in whatever order."""
    names = [b""] * len(batches)
    for places, rows in by_size(batches):
        for place, row in zip(places.tolist(), np.sort(rows, axis=1), strict=True):
            names[place] = xxhash.xxh3_128_digest(row.data)
    return names
