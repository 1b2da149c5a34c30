"""Does each epoch come in a new order?

Judged by the order that was observed, not by whether set_epoch was called somewhere: a wrapped sampler may never hear. Each
epoch is compared with all before it. Few samples have few orders, and chance repeats them: what it explains is open.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ...words import plural
from ..explanations import COINCIDENCE, ENOUGH, unless_contents_change
from ..verdict import Verdict, answering
from .measures import Reads, every_epoch, same_order
from .orders import Orders, Repeat, orders_of_batches, orders_of_ranks, period

NAME = "order"
QUESTION = "Does each epoch come in a new order?"
_answer = answering(NAME, QUESTION)

SHUFFLE = "call sampler.set_epoch(epoch) at the start of each epoch, on the object that draws the permutation"
MORE = "run two whole epochs of more data"


def detect(record: Record) -> Verdict:
    """Compare each epoch of the run under study with those before it, on every rank."""
    run = record.run
    endless = _endless(run)
    if endless is not None:
        return endless
    sequences = [read for read in _sequences(run) if len(read) > 1]
    if not sequences:
        number = sum(bool(epoch.whole.total) for epoch in every_epoch(run))
        return _answer(
            "not_applicable",
            cause=f"the run has {plural(number, 'epoch')} with samples",
            fix="run 2 epochs or more, without a cap on the steps",
        )
    verdicts = [_judge(read, run) for read in sequences]
    if verdicts[0].status != "found" and any(verdict.status == "found" for verdict in verdicts):
        return _of_later_passes(verdicts)
    for status in ("found", "inconclusive"):
        for verdict in verdicts:
            if verdict.status == status:
                return verdict
    return verdicts[0]


def _of_later_passes(verdicts: Sequence[Verdict]) -> Verdict:
    """Where the first loader's passes come in new orders and another's do not: what is not the training goes by its name."""
    later = next(verdict for verdict in verdicts if verdict.status == "found")
    return _answer(
        "inconclusive",
        later.evidence,
        cause="the first loader of an epoch comes in a new order each time, and another in one: an evaluation does that",
        fix='give a pass that is no training a name of its own: probe.batches(loader, name="validation")',
    )


def _sequences(run: Run) -> list[list[Reads]]:
    """What is compared with what: the epochs; each loader's passes, where an epoch has several; all passes of one epoch."""
    read = [epoch for epoch in every_epoch(run) if epoch.whole.total]
    if len(read) == 1:
        return [[part for part in read[0].parts if part.total]]
    parts: dict[int, list[Reads]] = {}
    for epoch in read:
        for part in epoch.parts:
            parts.setdefault(part.part or 0, []).append(part)
    return list(parts.values())


def _endless(run: Run) -> Verdict | None:
    """A run that counts no epochs: whether a rank's order begins again. None for any other run."""
    read = every_epoch(run)
    if len(read) != 1 or not read[0].parts[0].stretch:
        return None
    whole = read[0].whole
    periods = [after for keys in whole.of_rank if len(np.unique(keys)) >= ENOUGH and (after := period(keys, ENOUGH))]
    evidence = {"told_apart_by": Quantity(whole.key)}
    if not periods:
        return _answer(
            "not_applicable",
            evidence,
            cause="the program counts no epochs, and no rank's order begins again",
            fix="give each step its epoch: probe.batches(loader, epoch=epoch) or probe.begin_step(epoch)",
        )
    return _answer(
        "found",
        evidence | {"ranks_that_repeat": Quantity(len(periods), f"of {whole.world_size}")},
        cause=f"after {periods[0]:,} samples of a rank its order begins again, exactly: every pass over the data "
        "comes in the order of the one before",
        fix=SHUFFLE,
        where=str(run.fact("loader_where", "")) or None,
    )


@dataclass(frozen=True, eq=False)
class _Compared:
    """Epochs, and the stretches of them that repeat others."""

    read: Sequence[Reads]
    orders: Orders
    repeats: Sequence[Repeat]

    @property
    def decided(self) -> list[Repeat]:
        """Those that chance does not explain, the first first."""
        return sorted((one for one in self.repeats if one.surprise > COINCIDENCE), key=lambda one: (one.first, one.lag))

    def going_on(self, by_rank: bool) -> Repeat | None:
        """One that the run ended in, after a whole period of it. Batches may be so large that they have no order."""
        last = len(self.read) - 1
        to_the_end = (
            one
            for one in self.repeats
            if one.last == last and one.last - one.first + 1 >= one.lag and (by_rank or self.orders.surprise[:, last].any())
        )
        return max(to_the_end, key=lambda one: one.surprise, default=None)


def _compared(read: Sequence[Reads], orders: Orders) -> _Compared:
    return _Compared(read, orders, list(orders.repeats()))


def _judge(read: Sequence[Reads], run: Run) -> Verdict:
    by_rank = _compared(read, orders_of_ranks(read))
    if by_rank.decided:
        return _decided(by_rank, run, together=False)
    together = _compared(read, orders_of_batches(read))
    if together.decided:
        return _decided(together, run, together=True)
    open_ = by_rank.going_on(True) or together.going_on(False)
    if open_ is None:
        return _clear_if_it_would_show(read, run)
    first, second = read[open_.first - open_.lag], read[open_.first]
    return _answer(
        "inconclusive",
        _evidence(first, second),
        cause=f"{second.label} comes in the order of {first.label}, but so few samples have few orders, and chance may "
        "repeat one",
        fix=MORE,
    )


def _decided(compared: _Compared, run: Run, together: bool) -> Verdict:
    """Orders that repeat, and no chance that explains it."""
    read, repeat = compared.read, compared.decided[0]
    first, second = read[repeat.first - repeat.lag], read[repeat.first]
    again = sorted({place for one in compared.decided for place in range(one.first, one.last + 1)})
    evidence = _evidence(first, second) | {
        "begins_in_epoch": Quantity(second.epoch),
        "epochs_with_the_fault": Quantity(len(again), f"of {len(read) - 1} that have one before them"),
    }
    if all(read[place].one_batch for place in again):
        return _answer(
            "inconclusive",
            evidence,
            cause="every step reads the same batch: there is no order that could change",
            fix="read the data, and not one batch of them, for two epochs",
        )
    if max(len(of_rank) for seen in read for of_rank in seen.batches) == 1:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"the order is the same in {second.label} as in {first.label}, but an epoch is one step: there is no "
            "order of steps that could change",
            fix="use a smaller batch or more data, so that an epoch has several steps: a sampler that never hears of the "
            "next epoch shows then",
        )
    which = f"{second.label} repeats {first.label}'s"
    if repeat.first == repeat.lag == 1 and second.part is None:
        which = "the second epoch repeats the first one's"
    if _ascending(first):
        cause = "the loader does not shuffle: samples come in the order in which they are stored"
        fix = f"shuffle: DistributedSampler(data, shuffle=True), or shuffle=True on one rank; with a sampler {SHUFFLE}"
    elif not together:
        cause, fix = f"{which} order exactly: the sampler never hears which epoch it is", SHUFFLE
    else:
        cause = f"{which} global batches one by one, only dealt out to other ranks: the permutation never changes"
        fix = SHUFFLE
    if len(read) > 2:
        cause += f", in {len(again)} of {len(read) - 1} epochs that have one before them"
    return _answer("found", evidence, cause=cause, fix=fix, where=str(run.fact("loader_where", "")) or None)


def _evidence(first: Reads, second: Reads) -> dict[str, Quantity]:
    shares = same_order(first, second)
    return {
        "positions_with_the_same_sample": Quantity(float(shares.mean()), "of all, mean over ranks"),
        "ranks_that_repeat": Quantity(int((shares == 1).sum()), f"of {first.world_size}"),
        "told_apart_by": Quantity(first.key),
    }


def _ascending(seen: Reads) -> bool:
    """Whether each rank reads by rising ids, but for the last, which may be the sampler's padding."""
    return seen.key == "id" and all((np.diff(keys[:-1]) > 0).all() for keys in seen.of_rank)


def _clear_if_it_would_show(read: Sequence[Reads], run: Run) -> Verdict:
    evidence = _evidence(*read[:2])
    if len(read) == 2:
        clear = _answer("clear", evidence, cause="the second epoch comes in another order than the first")
    else:
        clear = _answer("clear", evidence, cause=f"none of {len(read)} epochs comes in the order of one before it")
    comes_again = any(np.isin(b.all_keys, a.all_keys).any() for a, b in itertools.pairwise(read))
    if read[0].key == "digest" and not comes_again:
        return _answer(
            "inconclusive",
            evidence,
            cause="no sample of the first epoch comes again in the second: other data, or contents that change each time "
            "(augmentation, padding), and then hashes show no order",
            fix="record the samples' ids too, with ids_at= or probe.samples(name, batch, ids), and the ids decide",
        )
    return unless_contents_change(clear, run)
