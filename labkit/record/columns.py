"""What a rank's steps read, as columns: the samples of all steps in one array, and where each step's begin.

A sample costs its 8 bytes, and a question about millions of them is asked of arrays. A step that was read from a file shows
its samples as `Keys`, which look like the list that was written.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import msgspec
import numpy as np

from .schema import Line, Seen, Step

DIGEST, ID = np.dtype(np.uint64), np.dtype(np.int64)

NOT_HASHED = 2**64 - 1
"""In place of the hash of a sample that a step has by its id alone."""


class Column:
    """Numbers of many steps behind one another; it grows while a file is read, or is given as it was kept."""

    __slots__ = ("_length", "_parts", "dtype")

    def __init__(self, dtype: np.dtype, kept: np.ndarray | None = None) -> None:
        self.dtype, self._parts, self._length = dtype, [] if kept is None else [kept], 0 if kept is None else len(kept)

    def add(self, values: Sequence[int]) -> Keys:
        """Append some numbers, and return them as a part of the column.

        Raises:
            OverflowError: one does not fit.
        """
        part = np.array(values, self.dtype)
        self._parts.append(part)
        start, self._length = self._length, self._length + len(part)
        return Keys(self, start, self._length)

    @property
    def values(self) -> np.ndarray:
        """All numbers [n]."""
        if len(self._parts) != 1:
            self._parts = [np.concatenate(self._parts) if self._parts else np.empty(0, self.dtype)]
        return self._parts[0]


class Keys(Sequence[int]):
    """A part of a column: a list of whole numbers to whoever looks at it."""

    __slots__ = ("_column", "_start", "_stop")

    def __init__(self, column: Column, start: int, stop: int) -> None:
        self._column, self._start, self._stop = column, start, stop

    @property
    def array(self) -> np.ndarray:
        """The numbers, without a copy."""
        return self._column.values[self._start : self._stop]

    def __len__(self) -> int:
        return self._stop - self._start

    def __iter__(self) -> Iterator[int]:
        return iter(self.array.tolist())

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> list[int]: ...
    def __getitem__(self, at: int | slice) -> int | list[int]:
        return self.array[at].tolist()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Keys):
            return np.array_equal(self.array, other.array)
        return self.array.tolist() == other if isinstance(other, list) else NotImplemented

    __hash__ = None  # pyright: ignore[reportAssignmentType] - as a list

    def __repr__(self) -> str:
        return repr(self.array.tolist())


def as_array(keys: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """The numbers of one step, as they were read or as a list."""
    return keys.array if isinstance(keys, Keys) else np.array(keys, dtype)


@dataclass(frozen=True, eq=False)
class Samples:
    """What the steps of one rank read under one name, step by step.

    Attributes:
        epoch, loader: [n] of each step that read anything under the name.
        starts, digests: step k read digests[starts[k] : starts[k + 1]].
        id_starts, ids: the same of the ids; a step without them has none.
        has_ids: [n] whether the step recorded ids.
    """

    epoch: np.ndarray
    loader: np.ndarray
    starts: np.ndarray
    digests: np.ndarray
    id_starts: np.ndarray
    ids: np.ndarray
    has_ids: np.ndarray

    def __len__(self) -> int:
        return len(self.epoch)

    @property
    def with_ids(self) -> bool:
        """Whether each sample of each step has an id."""
        return bool(self.has_ids.all()) and np.array_equal(self.starts, self.id_starts)


class Steps(tuple[Step, ...]):
    """The steps of a rank as they were read from its file, with their samples as columns."""

    columns: dict[str, tuple[Column, Column]]


class Gathering:
    """Takes the samples out of lines as they are read, and holds them in memory."""

    def __init__(self) -> None:
        self._of_steps: dict[str, tuple[Column, Column]] = {}
        self._of_seen: dict[str, tuple[Column, Column]] = {}

    def take(self, line: Line) -> Line:
        """The line, its samples moved into columns.

        Raises:
            OverflowError: a hash is not one of 64 bits.
        """
        if isinstance(line, Step):
            return self._step(line)
        return self._seen(line) if isinstance(line, Seen) else line

    def _step(self, step: Step) -> Step:
        fill_in(step)
        for name, values in step.digests.items():
            step.digests[name] = _of(self._of_steps, name)[0].add(values)  # pyright: ignore[reportArgumentType]
        for name in step.ids.keys() & step.digests.keys():
            step.ids[name] = _of(self._of_steps, name)[1].add(step.ids[name])  # pyright: ignore[reportArgumentType]
        return step

    def _seen(self, seen: Seen) -> Seen:
        digests, ids = _of(self._of_seen, seen.name)
        return msgspec.structs.replace(seen, digests=digests.add(seen.digests), ids=ids.add(seen.ids))

    def steps(self, steps: Iterable[Step]) -> Steps:
        """All steps that were read."""
        return with_columns(steps, self._of_steps)


def fill_in(step: Step) -> None:
    """Give a step as many hashes as it has ids, where it has ids alone."""
    for name in step.ids.keys() - step.digests.keys():
        step.digests[name] = [NOT_HASHED] * len(step.ids[name])


def with_columns(steps: Iterable[Step], columns: dict[str, tuple[Column, Column]]) -> Steps:
    """Steps, and their samples by name: hashes, ids."""
    found = Steps(steps)
    found.columns = columns
    return found


def _of(columns: dict[str, tuple[Column, Column]], name: str) -> tuple[Column, Column]:
    if name not in columns:
        columns[name] = Column(DIGEST), Column(ID)
    return columns[name]


def samples_of(steps: Sequence[Step], name: str) -> Samples:
    """What the steps of one rank read under a name; without a copy where they were read from a file."""
    reading = [step for step in steps if name in step.digests]
    count = len(reading)
    of_ids = [step.ids.get(name) for step in reading]
    columns = steps.columns.get(name) if isinstance(steps, Steps) else None
    digests, ids = (
        (column.values for column in columns)
        if columns is not None
        else (_joined((s.digests[name] for s in reading), DIGEST), _joined((one for one in of_ids if one), ID))
    )
    return Samples(
        epoch=np.fromiter((step.epoch for step in reading), np.int64, count),
        loader=np.fromiter((step.loader for step in reading), np.int64, count),
        starts=_starts([len(step.digests[name]) for step in reading]),
        digests=digests,
        id_starts=_starts([0 if one is None else len(one) for one in of_ids]),
        ids=ids,
        has_ids=np.fromiter((one is not None for one in of_ids), bool, count),
    )


def _starts(lengths: Sequence[int]) -> np.ndarray:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.array(lengths, np.int64))])


def _joined(parts: Iterable[Sequence[int]], dtype: np.dtype) -> np.ndarray:
    return np.array(list(itertools.chain.from_iterable(parts)), dtype)
