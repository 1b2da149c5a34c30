"""Does each epoch come in a new order?

Judged by the order that was observed, not by whether set_epoch was called somewhere: a wrapped sampler may never hear.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..record.measures import Quantity, Reads, epochs, reads, same_order
from ..record.schema import Record, Run
from ..words import plural
from .explanations import ENOUGH, unless_contents_change
from .verdict import Verdict, answering

NAME = "order"
QUESTION = "Does each epoch come in a new order?"
_answer = answering(NAME, QUESTION)

EPOCHS = 5
"""Epochs that are compared, from the first on."""


SHUFFLE = "call sampler.set_epoch(epoch) at the start of each epoch, on the object that draws the permutation"


def detect(record: Record) -> Verdict:
    """Compare each of the first epochs of the run under study with the one before it, on every rank."""
    run = record.run
    found = epochs(run)[:EPOCHS]
    if len(found) < 2:
        return _answer(
            "not_applicable",
            cause=f"the run has {plural(len(found), 'epoch')} with samples",
            fix="run 2 epochs or more, without a cap on the steps",
        )
    pairs = [_Pair(reads(run, one), reads(run, other)) for one, other in itertools.pairwise(found)]
    pair = next((pair for pair in pairs if pair.repeats and pair.different >= ENOUGH), pairs[0])
    evidence = {
        "positions_with_the_same_sample": Quantity(float(pair.shares.mean()), "of all, mean over ranks"),
        "ranks_that_repeat": Quantity(int((pair.shares == 1).sum()), f"of {pair.first.world_size}"),
        "told_apart_by": Quantity(pair.first.key),
    }
    if not pair.repeats:
        return _clear_if_it_would_show(pair, evidence, run)
    if max(len(of_rank) for of_rank in pair.first.batches) == 1:
        return _answer("clear", evidence, cause="an epoch is one step: there is no order that could change")
    if pair.different < ENOUGH:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"the order is the same, but a rank has only {pair.different} different samples to compare",
            fix="run two whole epochs of more data",
        )
    which = f"epoch {pair.second.epoch} repeats epoch {pair.first.epoch}'s"
    if pair.second.epoch == found[1]:
        which = "the second epoch repeats the first one's"
    if pair.ascending:
        cause = "the loader does not shuffle: samples come in the order in which they are stored"
        fix = f"shuffle: DistributedSampler(data, shuffle=True), or shuffle=True on one rank; with a sampler {SHUFFLE}"
    elif (pair.shares == 1).any():
        cause, fix = f"{which} order exactly: the sampler never hears which epoch it is", SHUFFLE
    else:
        cause = f"{which} global batches one by one, only dealt out to other ranks: the permutation never changes"
        fix = SHUFFLE
    return _answer("found", evidence, cause=cause, fix=fix, where=str(run.fact("loader_where", "")) or None)


@dataclass(frozen=True)
class _Pair:
    """Two epochs, one after the other."""

    first: Reads
    second: Reads

    @cached_property
    def shares(self) -> np.ndarray:
        """By rank: share of positions with the same sample."""
        return same_order(self.first, self.second)

    @cached_property
    def repeats(self) -> bool:
        """Whether a rank reads the same in the same order, or all ranks together the same in each of several steps."""
        steps = min(len(of_rank) for reads in (self.first, self.second) for of_rank in reads.batches)
        both = zip(self.first.global_batches[:steps], self.second.global_batches[:steps], strict=True)
        return bool((self.shares == 1).any()) or (
            steps > 1 and all(np.array_equal(np.sort(one), np.sort(other)) for one, other in both)
        )

    @property
    def different(self) -> int:
        """The most different samples that a rank repeats; of all ranks together where none repeats its own."""
        both = zip(self.first.of_rank, self.second.of_rank, self.shares, strict=True)
        own = [len(np.unique(a[: len(b)])) for a, b, share in both if share == 1]
        return max(own, default=self.first.unique)

    @property
    def ascending(self) -> bool:
        """Whether each rank reads by rising ids, but for the last, which may be the sampler's padding."""
        return self.first.key == "id" and all((np.diff(keys[:-1]) > 0).all() for keys in self.first.of_rank)


def _clear_if_it_would_show(pair: _Pair, evidence: dict[str, Quantity], run: Run) -> Verdict:
    clear = _answer("clear", evidence, cause="the second epoch comes in another order than the first")
    if pair.first.key == "digest" and not np.isin(pair.second.all_keys, pair.first.all_keys).any():
        return _answer(
            "inconclusive",
            evidence,
            cause="no sample of the first epoch comes again in the second: other data, or contents that change each time "
            "(augmentation, padding), and then hashes show no order",
            fix="record the samples' ids too, with ids_at= or probe.samples(name, batch, ids), and the ids decide",
        )
    return unless_contents_change(clear, run)
