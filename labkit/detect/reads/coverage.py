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
from ..explanations import MEETINGS, unless_contents_change, unless_ids_are_doubtful, with_replacement
from ..verdict import Verdict, answering
from .batches import distinct, find
from .measures import Reads, dataset_size, different_samples, every_epoch, reads
from .over_epochs import Judged, over_epochs, too_short
from .samplers import shared_out

NAME = "coverage"
QUESTION = "Is all of the data read in an epoch?"
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Judge each epoch of the run under study."""
    return _of_cut_parts(record.run) or unless_contents_change(_judge(record.run), record.run)


def _of_cut_parts(run: Run) -> Verdict | None:
    """Where each rank holds rows of its own, and a sampler then takes a rank's share of these."""
    apart = [one for one in shared_out(run) if one.over_all_ranks and one.parts]
    if not apart:
        return None
    held = [int(fields["size"]) for fields in apart[0].of_rank]
    cut = str(apart[0].of_rank[0]["cut"])
    evidence = {
        "held": Quantity(", ".join(map(str, held)), "samples, by rank, none of them on two ranks"),
        "sampler_shares_out_among": Quantity(len(held), "ranks"),
    }
    numbers = {"held": held, "ranks": len(held), "cut": cut}
    if not cut:
        return _answer("inconclusive", "sampler-over-own-rows", evidence, where=apart[0].where, **numbers)
    evidence["cut_by_rank"] = Quantity(cut, "", "read in the source")
    return _answer("found", "cut-by-rank-and-by-sampler", evidence, where=apart[0].where, **numbers)


def _judge(run: Run) -> Verdict:
    read, size, empty = [epoch.whole for epoch in every_epoch(run)], dataset_size(run), _ended_empty(run)
    if empty:
        return _of_empty(empty, len(read))
    if not any(seen.total for seen in read):
        return _answer("not_applicable", "reads-not-recorded")
    if size is None:
        return _answer("not_applicable", "dataset-size-not-recorded")
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
        return _answer("found", "nothing-is-read")
    epochs = read + len(empty)
    evidence = {
        "begins_in_epoch": Quantity(empty[0]),
        "epochs_with_the_fault": Quantity(len(empty), f"of {epochs}"),
    }
    return _answer("found", "iterator-used-up", evidence, empty=len(empty), epochs=epochs, first=empty[0])


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
            if find(seen.copies[0], so_far)[1].any():
                if len(so_far) < self._size - droppable:
                    return False
                so_far, passes = so_far[:0], passes + 1
            surprise -= seen.unique * math.log1p(-min(len(so_far) / self._size, 0.999))
            so_far = distinct(np.concatenate([so_far, seen.copies[0]]))
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
            return _answer("clear", "every-sample-read", evidence)
        if not seen.complete:
            return too_short(_answer("inconclusive", "epoch-cut-short", evidence))
        if self._dropped(at):
            return _answer("clear", "only-a-tail-dropped", evidence, missing=missing)
        return self._by_other_epochs(at, evidence) or self._by_reads(at, evidence)

    def _by_other_epochs(self, at: int, evidence: dict[str, Quantity]) -> Verdict | None:
        """Where other epochs read what this one leaves out; None where none does."""
        seen, missing = self._read[at], self._missing(at)
        if self._whole and at < self._whole[0]:
            whole = self._read[self._whole[0]].epoch
            return _answer("clear", "read-whole-later", evidence, epoch=seen.epoch, missing=missing, whole=whole)
        if self._whole and at < self._whole[-1]:
            return _answer("inconclusive", "one-epoch-leaves-out", evidence, epoch=seen.epoch, missing=missing)
        if self._in_turn is False:
            return None
        if self._in_turn:
            return _answer("clear", "part-after-part", evidence)
        return _answer("inconclusive", "part-after-part-so-far", evidence)

    def _by_reads(self, at: int, evidence: dict[str, Quantity]) -> Verdict:
        """By how many samples were read, and how often."""
        seen, size = self._read[at], self._size
        if seen.total >= size - self._droppable[at]:
            return self._enough_reads(at, evidence)
        if seen.world_size > 1 and abs(seen.total * seen.world_size / size - 1) < 0.1:
            return _answer(
                "found",
                "sharded-twice",
                evidence,
                where=self._where,
                read=seen.total,
                samples=size,
                ranks=seen.world_size,
            )
        return _answer("found", "part-of-the-data", evidence, where=self._where, read=seen.total, samples=size)

    def _enough_reads(self, at: int, evidence: dict[str, Quantity]) -> Verdict:
        """As many reads as samples, and yet some are not read: others are read again."""
        size, missing = self._size, self._missing(at)
        if not self._read[at].sure:
            return _answer("inconclusive", "as-many-reads-some-equal", evidence)
        if self._of_several_loaders(at):
            if different_samples(self._run) == size:
                return _answer("clear", "every-sample-read-by-content", evidence)
            return _answer("inconclusive", "loaders-may-share-ids", evidence)
        if self._replaced:
            return _answer("inconclusive", "some-repeated-in-place-of-others", evidence, missing=missing)
        return _answer("found", "never-read", evidence, where=self._where, missing=missing, samples=size)


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
