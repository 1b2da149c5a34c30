"""Is all of the data read in an epoch?

A sampler's or a loader's dropped tail is less than one global batch; whatever else is missing is never trained on in
this epoch. A loader that is sharded twice misses all but 1/W.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ...words import plural
from ..explanations import MEETINGS, unless_contents_change, unless_ids_are_doubtful, with_replacement
from ..verdict import Verdict, answering
from .measures import Reads, dataset_size, different_samples, every_epoch, reads
from .over_epochs import Judged, over_epochs, too_short

NAME = "coverage"
QUESTION = "Is all of the data read in an epoch?"
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Judge each epoch of the run under study."""
    return unless_contents_change(_judge(record.run), record.run)


def _judge(run: Run) -> Verdict:
    read, size, empty = [epoch.whole for epoch in every_epoch(run)], dataset_size(run), _ended_empty(run)
    if empty:
        return _of_empty(empty, len(read))
    if not any(seen.total for seen in read) or size is None:
        lacks = "the data set's size" if any(seen.total for seen in read) else "which samples were read"
        return _answer(
            "not_applicable",
            cause=f"the program did not record {lacks}",
            fix="declare it with probe.declare(dataset_size=...) and record each batch with probe.samples(name, batch)",
        )
    of_run = _OfRun(run, read, size)
    return over_epochs([Judged(seen, of_run.judge(at)) for at, seen in enumerate(read)])


def _ended_empty(run: Run) -> list[int]:
    """Epochs that came to their end on every rank, and in which nothing was read; what comes before the first read one may
    have been skipped."""
    ended = [
        {
            int(event.fields.get("epoch", 0))
            for event in log.events
            if event.name == "epoch_end" and "of" not in event.fields and not isinstance(event.fields.get("epoch"), str)
        }
        for log in run.ranks
    ]
    read = [epoch.whole.epoch for epoch in every_epoch(run) if epoch.whole.total]
    return sorted(epoch for epoch in set.intersection(*ended) - set(read) if not read or epoch > read[0])


def _of_empty(empty: Sequence[int], read: int) -> Verdict:
    if not read:
        return _answer(
            "found",
            cause="epochs end without a batch: nothing is read, and nothing trained",
            fix="look whether a rank has fewer samples than a batch and drop_last=True drops them: take a smaller batch, or "
            "keep the last one",
        )
    return _answer(
        "found",
        {
            "begins_in_epoch": Quantity(empty[0]),
            "epochs_with_the_fault": Quantity(len(empty), f"of {read + len(empty)}"),
        },
        cause=f"{plural(len(empty), 'epoch')} of {read + len(empty)}, first epoch {empty[0]}, end without a batch: nothing "
        "is read, and nothing trained",
        fix="give each epoch an iterator of its own: a generator, or iter(loader), is used up after one pass",
    )


class _OfRun:
    """What one epoch is judged by: what the others read."""

    def __init__(self, run: Run, read: Sequence[Reads], size: int) -> None:
        self._run, self._read, self._size = run, read, size
        self._where = str(run.fact("loader_where", "")) or None
        self._droppable = [_droppable(seen, run.fact("batch_size")) for seen in read]
        self._whole = [at for at in range(len(read)) if self._missing(at) == 0 or self._dropped(at)]
        last = self._whole[-1] if self._whole else -1
        self._lacking = [at for at in range(last + 1, len(read)) if read[at].complete and read[at].total]

    def _missing(self, at: int) -> int:
        return max(0, self._size - self._read[at].unique)

    def _dropped(self, at: int) -> bool:
        """Whether what an epoch leaves out is a dropped tail."""
        seen = self._read[at]
        return seen.complete and seen.total < self._size and self._missing(at) <= self._droppable[at]

    @cached_property
    def _replaced(self) -> bool:
        """Whether drawing with replacement explains what the last epochs read, taken together."""
        return with_replacement([self._read[at] for at in self._lacking], self._size)

    @cached_property
    def _in_turn(self) -> bool | None:
        """Whether the last epochs read one part of the data after the other; None where they may yet come to all.

        A part chosen anew in each epoch would by chance hold samples of the one before.
        """
        parts = [self._read[at] for at in self._lacking]
        so_far, surprise, passes = parts[0].copies[0][:0], 0.0, 0
        for seen, droppable in zip(parts, (self._droppable[at] for at in self._lacking), strict=True):
            if np.isin(seen.copies[0], so_far).any():
                if len(so_far) < self._size - droppable:
                    return False
                so_far, passes = so_far[:0], passes + 1
            surprise -= seen.unique * math.log1p(-min(len(so_far) / self._size, 0.999))
            so_far = np.union1d(so_far, seen.copies[0])
        passes += len(so_far) >= self._size - self._droppable[self._lacking[-1]]
        if surprise < MEETINGS:  # so few samples may be apart by chance
            return None if passes else False
        return True if passes else None

    def _of_several_loaders(self, at: int) -> bool:
        """Whether loaders of this epoch read enough contents, under ids that several of them use."""
        seen = self._read[at]
        several = any(step.loader and step.epoch == seen.epoch for log in self._run.ranks for step in log.steps)
        if seen.key == "digest" or not several:
            return False
        return reads(self._run, seen.epoch, "digest").unique >= self._size - self._droppable[at]

    def judge(self, at: int) -> Verdict:
        """What an epoch says."""
        return unless_ids_are_doubtful(self._judge(at), self._read[at])

    def _judge(self, at: int) -> Verdict:
        seen, size, missing = self._read[at], self._size, self._missing(at)
        evidence = {
            "coverage": Quantity(seen.unique / size, "of the data set"),
            "missing_samples": Quantity(missing, "samples"),
            "samples_per_epoch": Quantity(seen.total, "samples"),
            "dataset_size": Quantity(size, "samples"),
            "told_apart_by": Quantity(seen.key),
        }
        if missing == 0:
            return _answer("clear", evidence, cause="every sample is read")
        if not seen.complete:
            return too_short(
                _answer(
                    "inconclusive",
                    evidence,
                    cause="the run ended before the epoch did, so what it did not read may still have come",
                    fix='run a whole epoch (no cap on the steps); in a loop of your own say probe.event("epoch_end", '
                    "epoch=epoch) after the last batch",
                )
            )
        if self._dropped(at):
            return _answer("clear", evidence, cause=f"all is read but a dropped tail of {missing}, less than a global batch")
        return self._by_other_epochs(at, evidence) or self._by_reads(at, evidence)

    def _by_other_epochs(self, at: int, evidence: dict[str, Quantity]) -> Verdict | None:
        """Where other epochs read what this one leaves out; None where none does."""
        seen, missing = self._read[at], self._missing(at)
        if self._whole and at < self._whole[0]:
            return _answer(
                "clear",
                evidence,
                cause=f"epoch {seen.epoch} leaves out {missing:,}, as a curriculum or a resumed epoch does, and epoch "
                f"{self._read[self._whole[0]].epoch} reads every sample",
            )
        if self._whole and at < self._whole[-1]:
            return _answer(
                "inconclusive",
                evidence,
                cause=f"epoch {seen.epoch} leaves out {missing:,} samples, and epochs before and after it read all",
                fix="look at what is different in this epoch; if it is to read a part of the data, all is well",
            )
        if self._in_turn is False:
            return None
        if self._in_turn:
            return _answer(
                "clear", evidence, cause="epochs read one part of the data after the other, and in turn all of it"
            )
        return _answer(
            "inconclusive",
            evidence,
            cause="epochs read one part of the data after the other; but the run ended before all was read, or parts so "
            "small are apart by chance",
            fix="run as many epochs as it takes to read all of the data once",
        )

    def _by_reads(self, at: int, evidence: dict[str, Quantity]) -> Verdict:
        """By how many samples were read, and how often."""
        seen, size, missing = self._read[at], self._size, self._missing(at)
        enough_reads = seen.total >= size - self._droppable[at]
        if enough_reads and not seen.sure:
            return _answer(
                "inconclusive",
                evidence,
                cause="as many samples were read as the data set holds, but some are equal: copies in the data, or reads "
                "repeated in place of others; hashes of the content cannot tell",
                fix="record the samples' ids too, with ids_at= or probe.samples(name, batch, ids), and the ids decide",
            )
        if enough_reads and self._of_several_loaders(at):
            if different_samples(self._run) == size:
                return _answer("clear", evidence, cause="every sample is read, by contents: several loaders share their ids")
            return _answer(
                "inconclusive",
                evidence,
                cause="fewer ids than samples are read, but contents enough: several loaders were read, whose data may each "
                "count ids from 0",
                fix="give each sample of all the data an id of its own",
            )
        if enough_reads and self._replaced:
            return _answer(
                "inconclusive",
                evidence,
                cause=f"not read: {plural(missing, 'sample')}, while others are repeated, as drawing with replacement does",
                fix="draw without replacement for one epoch, and judge that",
            )
        if enough_reads:
            cause = f"{missing:,} of {plural(size, 'sample')} are never read, while others are read more than once"
            fix = "build the ranks' shares from one permutation, and one split, that are the same on every rank"
        else:
            cause = f"an epoch reads {seen.total:,} samples of {size:,}"
            if seen.world_size > 1 and abs(seen.total * seen.world_size / size - 1) < 0.1:
                cause += f", about 1/{seen.world_size}: each rank takes its share of a share"
            fix = "shard once: give the whole data set to one DistributedSampler, and let no other wrapper split its output"
        return _answer("found", evidence, cause=cause, fix=fix, where=self._where)


def _droppable(seen: Reads, batch: object) -> int:
    """How many samples a dropped tail may hold.

    With a last batch that is shorter than the others nothing was dropped but by the sampler (fewer than W); else less
    than a global batch. Where batches differ anyway, as those of a number of tokens do, a short one says nothing.
    """
    by_sampler = seen.world_size - 1
    largest = max((int(of_rank.sizes.max(initial=0)) for of_rank in seen.batches), default=0)
    full = int(batch) if isinstance(batch, int) and batch > 0 else largest
    differ = len(set().union(*(np.unique(of_rank.sizes[:-1]).tolist() for of_rank in seen.batches))) > 2
    if not differ and any(of_rank.sizes[-1] < full for of_rank in seen.batches if of_rank):
        return by_sampler
    return (largest if differ else full) * seen.world_size - 1
