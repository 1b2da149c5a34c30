"""What the ranks read, epoch by epoch: the arrays that every question about reading is asked of. Pure; no torch, no I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from ...record.columns import DIGEST, ID
from ..catalogue import Said, said
from .batches import Batches, counted, distinct, distinct_in_each, equal_steps, print_of, sizes_of, together
from .keeping import Keeping, kept

Key = Literal["id", "digest"]
KEY_TYPES: dict[Key, np.dtype] = {"id": ID, "digest": DIGEST}


@dataclass(frozen=True, eq=False)
class Reads:
    """What every rank read in one epoch, or in a part of one.

    Attributes:
        epoch: which.
        key: whether samples are told apart by their ids or by a hash of their content.
        batches: by rank, by step: an array of keys in the order in which they were read.
        complete: every rank reached the end of the epoch.
        doubtful: ids that ranks share stand for other contents on each: they may number each rank's own part of the data.
        all_differ: the run read as many different contents as the data hold samples: hashes are as good as ids.
        part: which loader's pass of the epoch, or which stretch of an endless one; None for all of the epoch.
        stretch: of an epoch without end, which no loader's end divides.
        keeping: where arrays of millions are kept while there is room; one for all epochs of a run.
    """

    epoch: int
    key: Key
    batches: tuple[Batches, ...]
    complete: bool
    doubtful: bool = False
    all_differ: bool = False
    part: int | None = None
    stretch: bool = False
    keeping: Keeping = field(default_factory=Keeping, repr=False)

    @property
    def sure(self) -> bool:
        """Whether equal keys are one sample, and not two of equal content."""
        return self.key == "id" or self.all_differ

    @property
    def label(self) -> Said:
        """Which epoch, or which part of it."""
        if self.part is None:
            return said("epoch-number", epoch=self.epoch)
        if self.stretch:
            return said("stretch-number", part=self.part)
        return said("pass-of-epoch", part=self.part, epoch=self.epoch)

    @property
    def world_size(self) -> int:
        return len(self.batches)

    @cached_property
    def of_rank(self) -> tuple[np.ndarray, ...]:
        """All keys that each rank read, in order."""
        return tuple(of_rank.keys for of_rank in self.batches)

    @property
    def all_keys(self) -> np.ndarray:
        """What all ranks read, rank by rank; made anew each time."""
        return np.concatenate(self.of_rank)

    @cached_property
    def total(self) -> int:
        """Samples processed, by all ranks together."""
        return sum(len(keys) for keys in self.of_rank)

    @kept
    def copies(self) -> tuple[np.ndarray, np.ndarray]:
        """(keys, how often each was read by all ranks together)."""
        return counted(self.all_keys)

    @cached_property
    def unique(self) -> int:
        """Different samples read by all ranks together."""
        return len(self.copies[0])

    @property
    def each_once(self) -> bool:
        """Whether no sample was read twice, by whomever."""
        return self.unique == self.total

    @kept
    def ranks_reading(self) -> np.ndarray:
        """For each key of `copies`, by how many ranks it was read."""
        if self.each_once:
            return np.ones(self.total, np.int64)
        return counted(np.concatenate([distinct(keys) for keys in self.of_rank]))[1]

    @cached_property
    def across_ranks(self) -> int:
        """Reads of a sample that another rank had read or would read: sum over samples of (ranks reading it - 1)."""
        return int((self.ranks_reading - 1).sum())

    @cached_property
    def repeats_of_shared(self) -> int:
        """Repeated reads, by any rank, of the samples that several ranks read."""
        return int((self.copies[1] - 1)[self.ranks_reading > 1].sum())

    @cached_property
    def within_ranks(self) -> int:
        """Reads of a sample that the same rank read before in this epoch."""
        return 0 if self.each_once else sum(len(keys) - len(distinct(keys)) for keys in self.of_rank)

    @kept
    def _times_of_rank(self) -> tuple[np.ndarray, ...]:
        """By rank: how often it reads each of its samples."""
        return tuple(counted(keys)[1] for keys in self.of_rank)

    @cached_property
    def even_repeats_of_rank(self) -> tuple[int | None, ...]:
        """By rank: how often it reads each of its samples, if (99 % of) all equally often; None otherwise."""
        if not self.within_ranks:
            return tuple(1 if len(keys) else None for keys in self.of_rank)
        return tuple(_usual(times) for times in self._times_of_rank)

    @cached_property
    def even_repeats(self) -> int | None:
        """How often a rank reads each of its samples, if (99 % of) all samples equally often; None otherwise."""
        if not self.within_ranks:
            return 1 if self.total else None
        usual = _usual(np.concatenate(self._times_of_rank))
        return usual if usual and usual > 1 else None

    @kept
    def global_batches(self) -> Batches:
        """By step: the keys of all ranks together."""
        return together(self.batches, KEY_TYPES[self.key])

    @cached_property
    def sizes(self) -> np.ndarray:
        """By step: how many samples all ranks together read."""
        return sizes_of(self.batches, absent=0).sum(axis=0)

    @cached_property
    def unique_shares(self) -> np.ndarray:
        """By step: different samples of the global batch / its samples."""
        some = self.sizes > 0
        if self.each_once:
            return np.ones(int(some.sum()))
        return distinct_in_each(self.global_batches)[some] / self.sizes[some]

    @cached_property
    def full_steps(self) -> np.ndarray:
        """By step: whether every rank had a batch of the full size (all are full where none is larger)."""
        sizes = sizes_of(self.batches, absent=-1)
        return (sizes == sizes.max(initial=0)).all(axis=0)

    @property
    def unique_share_of_global_batch(self) -> float:
        """Mean over the steps with full batches (over all, where none is full)."""
        shares = self.unique_shares
        full = self.full_steps[: len(shares)]
        return float(shares[full].mean() if full.any() else shares.mean())

    @cached_property
    def one_batch(self) -> bool:
        """Whether each rank read, at every step (of at least 3), the same batch of different samples."""
        return bool(self.batches) and all(_one_batch(of_rank) for of_rank in self.batches)

    @cached_property
    def identical_steps(self) -> float:
        """Share of steps in which all ranks read the same samples in the same order."""
        if self.world_size == 1 or not len(self.sizes):
            return 0.0
        first, *others = self.batches
        same = np.ones(min(len(of_rank) for of_rank in self.batches), bool)
        for other in others:
            same &= equal_steps(first, other)[: len(same)]
        return int(same.sum()) / len(self.sizes)

    @cached_property
    def twins(self) -> list[tuple[int, ...]]:
        """Groups of ranks, but not all ranks, that read the same samples in the same order at every step (of at least 3)."""
        groups: dict[bytes, list[int]] = {}
        for rank, of_rank in enumerate(self.batches):
            groups.setdefault(print_of(of_rank.keys, of_rank.starts), []).append(rank)
        found = [tuple(group) for group in groups.values() if len(group) > 1 and len(self.batches[group[0]]) >= 3]
        return [] if len(groups) == 1 else found


def _one_batch(of_rank: Batches) -> bool:
    sizes = of_rank.sizes
    if len(sizes) < 3 or (sizes != sizes[0]).any() or len(distinct(of_rank[0])) < 2:
        return False
    ordered = np.sort(of_rank.keys.reshape(len(sizes), -1), axis=1)
    return bool((ordered == ordered[0]).all())


def _usual(counts: np.ndarray) -> int | None:
    usual = int(np.median(counts)) if len(counts) else 0
    return usual if usual and (counts == usual).mean() >= 0.99 else None
