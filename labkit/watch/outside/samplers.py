"""DistributedSampler: which rows lie under its indices on this rank, and the loop in which a loader is read anew.

The rows are told from those of other ranks by the smallest of their hashes: equal ones of equal sets in whatever order, and
others of parts that share nothing. Only what lies in memory is hashed; no sample is asked for.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

import xxhash

from ...record.batches import digest_rows
from ...record.probe import Probe
from .patches import Patches, called_from, is_library, named
from .written import assigns, calls, cut_by_rank, loops_around

SKETCH = 24
"""Hashes that are kept of a column."""

ROWS, BYTES = 20_000, 16_000_000
"""Rows and bytes of a column beyond which it is not hashed."""

COLUMNS = 4


class Samplers:
    """The samplers that share a data set out over ranks. *Called on* each rank."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._made: weakref.WeakKeyDictionary[Any, list[tuple[str, int]]] = weakref.WeakKeyDictionary()
        self._told: weakref.WeakSet[Any] = weakref.WeakSet()
        self._kind: Any = None

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        from torch.utils.data.distributed import DistributedSampler

        self._kind = DistributedSampler
        made = patches.noting(self._note)

        def around(original):
            def __init__(sampler, *args, **kwargs):
                original(sampler, *args, **kwargs)
                made(sampler)

            return __init__

        patches.wrap(DistributedSampler, "__init__", around)

    def _note(self, sampler: Any) -> None:
        self._made[sampler] = _stack()

    def begins(self, loader: Any, number: int) -> None:
        """A loader, of this stream of data, begins a pass."""
        sampler = loader.sampler
        if sampler not in self._made or sampler in self._told:
            return
        self._told.add(sampler)
        file, line = cut_by_rank()
        self._probe.event(
            "sampled",
            loader=number,
            where=called_from(),
            size=len(sampler.dataset),
            ranks=int(sampler.num_replicas),
            rank=int(sampler.rank),
            shuffle=bool(sampler.shuffle),
            rows="|".join(_sketches(loader.dataset)),
            cut=named(file, line) if file else "",
            loop=self._loop(sampler),
            told=calls("set_epoch") or assigns("epoch") or type(sampler) is not self._kind or bool(sampler.epoch),
        )

    def _loop(self, sampler: Any) -> str:
        """The loop that reads the loader again and again and makes no new sampler each time; empty without one."""
        made = self._made[sampler]
        for file, line in _stack():
            for first, last in loops_around(file, line):
                if not any(of == file and first <= at <= last for of, at in made):
                    return named(file, first)
        return ""


def _stack() -> list[tuple[str, int]]:
    """(file, line) of the script's own frames, the innermost first."""
    frame: Any = sys._getframe(2)
    found = []
    while frame is not None:
        if not is_library(frame.f_code.co_filename):
            found.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return found


def _sketches(dataset: Any) -> list[str]:
    """Of each column of rows that a data set holds in memory: its smallest hashes, where it has enough different rows."""
    places = None
    while hasattr(dataset, "indices") and hasattr(dataset, "dataset"):
        own = list(dataset.indices)
        places = own if places is None else [own[at] for at in places]
        dataset = dataset.dataset
    found = []
    for column in _columns(dataset)[:COLUMNS]:
        hashes = _hashes(column, places)
        if len(hashes) >= SKETCH:
            found.append(" ".join(f"{one:016x}" for one in sorted(hashes)[:SKETCH]))
    return found


def _columns(dataset: Any) -> list[Any]:
    """What a data set holds as many of as it has samples."""
    if isinstance(dataset, (list, tuple)):
        return [dataset]
    held = list(getattr(dataset, "tensors", ())) or list(getattr(dataset, "__dict__", {}).values())
    return [one for one in held if _is_column(one, len(dataset))]


def _is_column(one: Any, count: int) -> bool:
    if isinstance(one, (list, tuple)):
        return len(one) == count
    return getattr(one, "ndim", 0) > 0 and one.shape[0] == count


def _hashes(column: Any, places: list[int] | None) -> set[int]:
    if places is not None:
        column = [column[at] for at in places[: ROWS + 1]] if isinstance(column, (list, tuple)) else column[places]
    if len(column) > ROWS:
        return set()
    if isinstance(column, (list, tuple)):
        return {_hash_of(one) for one in column}
    if getattr(getattr(column, "device", None), "type", "cpu") != "cpu" or column.nbytes > BYTES:
        return set()
    return set(digest_rows(column))


def _hash_of(one: Any) -> int:
    if hasattr(one, "ndim"):
        return hash(tuple(digest_rows(one.reshape(1, -1)))) & (2**63 - 1)
    return xxhash.xxh3_64_intdigest(repr(one)[:4096].encode())
