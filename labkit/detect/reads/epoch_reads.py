"""What the ranks read, epoch by epoch: the arrays that every question about reading is asked of. Pure; no torch, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

Key = Literal["id", "digest"]


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
    """

    epoch: int
    key: Key
    batches: tuple[tuple[np.ndarray, ...], ...]
    complete: bool
    doubtful: bool = False
    all_differ: bool = False
    part: int | None = None
    stretch: bool = False

    @property
    def sure(self) -> bool:
        """Whether equal keys are one sample, and not two of equal content."""
        return self.key == "id" or self.all_differ

    @property
    def label(self) -> str:
        """Which epoch, or which part of it, as words."""
        if self.part is None:
            return f"epoch {self.epoch}"
        return f"stretch {self.part}" if self.stretch else f"pass {self.part} of epoch {self.epoch}"

    @property
    def world_size(self) -> int:
        return len(self.batches)

    @cached_property
    def of_rank(self) -> tuple[np.ndarray, ...]:
        """All keys that each rank read, in order."""
        dtype = np.int64 if self.key == "id" else np.uint64  # the two together would become float64
        return tuple(np.concatenate(b) if b else np.empty(0, dtype) for b in self.batches)

    @cached_property
    def all_keys(self) -> np.ndarray:
        return np.concatenate(self.of_rank)

    @property
    def total(self) -> int:
        """Samples processed, by all ranks together."""
        return len(self.all_keys)

    @cached_property
    def copies(self) -> tuple[np.ndarray, np.ndarray]:
        """(keys, how often each was read by all ranks together)."""
        return np.unique(self.all_keys, return_counts=True)

    @property
    def unique(self) -> int:
        """Different samples read by all ranks together."""
        return len(self.copies[0])

    @cached_property
    def ranks_reading(self) -> np.ndarray:
        """For each key of `copies`, by how many ranks it was read."""
        own = [np.unique(keys) for keys in self.of_rank]
        return np.unique(np.concatenate(own), return_counts=True)[1]

    @property
    def across_ranks(self) -> int:
        """Reads of a sample that another rank had read or would read: sum over samples of (ranks reading it - 1)."""
        return int((self.ranks_reading - 1).sum())

    @property
    def repeats_of_shared(self) -> int:
        """Repeated reads, by any rank, of the samples that several ranks read."""
        return int((self.copies[1] - 1)[self.ranks_reading > 1].sum())

    @cached_property
    def within_ranks(self) -> int:
        """Reads of a sample that the same rank read before in this epoch."""
        return sum(len(keys) - len(np.unique(keys)) for keys in self.of_rank)

    @cached_property
    def even_repeats_of_rank(self) -> tuple[int | None, ...]:
        """By rank: how often it reads each of its samples, if (99 % of) all equally often; None otherwise."""
        return tuple(_usual(np.unique(keys, return_counts=True)[1]) for keys in self.of_rank)

    @cached_property
    def even_repeats(self) -> int | None:
        """How often a rank reads each of its samples, if (99 % of) all samples equally often; None otherwise."""
        usual = _usual(np.concatenate([np.unique(keys, return_counts=True)[1] for keys in self.of_rank]))
        return usual if usual and (usual > 1 or self.within_ranks == 0) else None

    @cached_property
    def global_batches(self) -> tuple[np.ndarray, ...]:
        """By step: the keys of all ranks together."""
        steps = max((len(b) for b in self.batches), default=0)
        return tuple(np.concatenate([b[step] for b in self.batches if step < len(b)]) for step in range(steps))

    @cached_property
    def unique_shares(self) -> np.ndarray:
        """By step: different samples of the global batch / its samples."""
        if self.unique == self.total:
            return np.ones(sum(len(keys) > 0 for keys in self.global_batches))
        return np.array([len(np.unique(keys)) / len(keys) for keys in self.global_batches if len(keys)])

    @cached_property
    def full_steps(self) -> np.ndarray:
        """By step: whether every rank had a batch of the full size (all are full where none is larger)."""
        largest = max((len(keys) for b in self.batches for keys in b), default=0)
        return np.array(
            [
                all(step < len(b) and len(b[step]) == largest for b in self.batches)
                for step in range(len(self.global_batches))
            ]
        )

    @property
    def unique_share_of_global_batch(self) -> float:
        """Mean over the steps with full batches (over all, where none is full)."""
        shares = self.unique_shares
        full = self.full_steps[: len(shares)]
        return float(shares[full].mean() if full.any() else shares.mean())

    @property
    def one_batch(self) -> bool:
        """Whether each rank read, at every step (of at least 3), the same batch of different samples."""
        return bool(self.batches) and all(
            len(b) >= 3 and len(np.unique(b[0])) > 1 and all(np.array_equal(np.sort(b[0]), np.sort(keys)) for keys in b[1:])
            for b in self.batches
        )

    @cached_property
    def identical_steps(self) -> float:
        """Share of steps in which all ranks read the same samples in the same order."""
        same = [
            all(step < len(b) and np.array_equal(b[step], self.batches[0][step]) for b in self.batches)
            for step in range(len(self.global_batches))
        ]
        return sum(same) / len(same) if same and self.world_size > 1 else 0.0

    @cached_property
    def twins(self) -> list[tuple[int, ...]]:
        """Groups of ranks, but not all ranks, that read the same samples in the same order at every step (of at least 3)."""
        groups: dict[tuple[bytes, ...], list[int]] = {}
        for rank, of_rank in enumerate(self.batches):
            groups.setdefault(tuple(keys.tobytes() for keys in of_rank), []).append(rank)
        found = [tuple(group) for read, group in groups.items() if len(group) > 1 and len(read) >= 3]
        return [] if len(groups) == 1 else found


def _usual(counts: np.ndarray) -> int | None:
    usual = int(np.median(counts)) if len(counts) else 0
    return usual if usual and (counts == usual).mean() >= 0.99 else None
