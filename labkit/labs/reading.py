"""What the ranks of one epoch read, judged: each sample once, equally many steps, no batch too large. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..record.schema import Run

OfRank = Sequence[Sequence[int]]
"""Ids of one rank in one epoch, batch by batch."""


@dataclass(frozen=True)
class Sizes:
    """What is read, and by how many."""

    num_samples: int
    world_size: int
    batch: int

    @property
    def said(self) -> str:
        return f"N={self.num_samples}, W={self.world_size}, batch={self.batch}"

    @property
    def padding(self) -> int:
        """Repeats that suffice to give every rank equally many samples."""
        return -self.num_samples % self.world_size


def judge_epoch(of_ranks: Sequence[OfRank], sizes: Sizes) -> list[str]:
    """What is wrong with what the ranks read in one epoch, in phrases; an empty list when nothing is."""
    reads = Counter(index for of_rank in of_ranks for batch in of_rank for index in batch)
    steps = [len(of_rank) for of_rank in of_ranks]
    findings = []
    if min(steps) != max(steps):
        findings.append(
            f"the ranks take {sorted(set(steps))} steps (rank {steps.index(min(steps))} fewest, rank "
            f"{steps.index(max(steps))} most): in the last ones some would wait for ever"
        )
    strange = [index for index in reads if not 0 <= index < sizes.num_samples]
    missing = sizes.num_samples - (len(reads) - len(strange))
    if strange:
        findings.append(f"sample {strange[0]} is read, and there is none of that number")
    if missing:
        findings.append(f"{missing} of {sizes.num_samples} samples are never read")
    repeats = sum(reads.values()) - len(reads)
    if repeats > sizes.padding:
        findings.append(
            f"{repeats} reads are repeats, where {sizes.padding} suffice to give every rank equally many"
            f"{_who_shares(of_ranks)}"
        )
    largest = max((len(batch) for of_rank in of_ranks for batch in of_rank), default=0)
    if largest > sizes.batch:
        findings.append(f"a batch is larger than {sizes.batch}: it has {largest} samples")
    return findings


def _who_shares(of_ranks: Sequence[OfRank]) -> str:
    """Which two ranks read most of the same, as a phrase; empty where no two do."""
    sets = [{index for batch in of_rank for index in batch} for of_rank in of_ranks]
    pairs = [(len(sets[a] & sets[b]), a, b) for a in range(len(sets)) for b in range(a + 1, len(sets))]
    most, a, b = max(pairs, key=lambda pair: pair[0], default=(0, 0, 0))
    return f" (ranks {a} and {b} share {most})" if most > 1 else ""


def judge_epochs(read: Mapping[int, Sequence[OfRank]], sizes: Sizes) -> list[str]:
    """What is wrong in the first epoch that is wrong, in phrases that name it, and which other epochs are right."""
    wrong = {epoch: found for epoch, of_ranks in read.items() if (found := judge_epoch(of_ranks, sizes))}
    if not wrong:
        return []
    first = next(iter(wrong))
    right = ", ".join(str(epoch) for epoch in read if epoch not in wrong)
    aside = f" (right in epoch {right})" if right else ""
    return [f"in epoch {first} {text}{aside}" for text in wrong[first]]


def same_order(read: Mapping[int, Sequence[OfRank]]) -> tuple[int, int] | None:
    """Two epochs in which every rank reads the same samples in the same order, or None."""
    came: dict[tuple, int] = {}
    for epoch, of_ranks in read.items():
        order = tuple(tuple(index for batch in of_rank for index in batch) for of_rank in of_ranks)
        before = came.setdefault(order, epoch)
        if before != epoch:
            return before, epoch
    return None


def read_by_epoch(run: Run, name: str = "train") -> dict[int, list[list[list[int]]]]:
    """What the ranks of a run recorded that they read, by epoch: ids by rank, by batch."""
    epochs = sorted({step.epoch for log in run.ranks for step in log.steps})
    return {
        epoch: [[step.ids.get(name, []) for step in log.steps if step.epoch == epoch] for log in run.ranks]
        for epoch in epochs
    }
