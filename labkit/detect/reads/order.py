"""Does each epoch come in a new order?

Judged by the order that was observed, not by whether set_epoch was called somewhere: a wrapped sampler may never hear. Each
epoch is compared with all before it. Few samples have few orders, and chance repeats them: what it explains is open.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..catalogue import said
from ..explanations import COINCIDENCE, ENOUGH, unless_contents_change
from ..verdict import Verdict, answering
from .batches import distinct, find
from .measures import Reads, every_epoch, same_order
from .orders import Orders, Repeat, orders_of_batches, orders_of_ranks, period
from .samplers import shared_out

NAME = "order"
QUESTION = "Does each epoch come in a new order?"
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Compare each epoch of the run under study with those before it, on every rank."""
    run = record.run
    endless = _endless(run)
    if endless is not None:
        return endless
    sequences = [read for read in _sequences(run) if len(read) > 1]
    if not sequences:
        number = sum(bool(epoch.whole.total) for epoch in every_epoch(run))
        return _of_source(run) or _answer("not_applicable", "too-few-epochs", epochs=number)
    verdicts = [_judge(read, run) for read in sequences]
    if verdicts[0].status != "found" and any(verdict.status == "found" for verdict in verdicts):
        return _of_later_passes(verdicts)
    for status in ("found", "inconclusive"):
        for verdict in verdicts:
            if verdict.status == status:
                return verdict
    return verdicts[0]


def _of_source(run: Run) -> Verdict | None:
    """Of a run with one epoch: whether its sampler is read in a loop, and the source sets no epoch."""
    where = _where(run)
    known = [one for one in shared_out(run) if one.where == where and one.over_all_ranks]
    own = known[0].of_rank[0] if len(known) == 1 else None
    if own is None or not own["shuffle"] or not own["loop"] or own["told"]:
        return None
    evidence = {"loop": Quantity(str(own["loop"]), "", "read in the source")}
    if any(event.name == "stopped" for event in run.ranks[0].events):
        return _answer("found", "epoch-is-never-set", evidence, where=where, loop=own["loop"])
    return _answer("inconclusive", "epoch-may-need-setting", evidence, where=where)


def _of_later_passes(verdicts: Sequence[Verdict]) -> Verdict:
    """Where the first loader's passes come in new orders and another's do not: what is not the training goes by its name."""
    later = next(verdict for verdict in verdicts if verdict.status == "found")
    return _answer("inconclusive", "later-pass-in-one-order", later.evidence)


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
    periods = [after for keys in whole.of_rank if len(distinct(keys)) >= ENOUGH and (after := period(keys, ENOUGH))]
    evidence = {"told_apart_by": Quantity(whole.key)}
    if not periods:
        return _answer("not_applicable", "no-epochs-counted", evidence)
    evidence |= {"ranks_that_repeat": Quantity(len(periods), f"of {whole.world_size}")}
    return _answer("found", "order-begins-again", evidence, where=_where(run), samples=periods[0])


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
    evidence = _evidence(first, second)
    return _answer("inconclusive", "chance-may-repeat-an-order", evidence, first=first.label, second=second.label)


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
        return _answer("inconclusive", "every-step-the-same-batch", evidence)
    if max(len(of_rank) for seen in read for of_rank in seen.batches) == 1:
        return _answer("inconclusive", "epoch-is-one-step", evidence, first=first.label, second=second.label)
    if first.key == "digest" and run.fact("watched_by") == "doctor" and run.fact("dataset_size") is None:
        return _answer("inconclusive", "stream-in-one-order", evidence)  # its own order may be meant
    known: dict[str, Any] = {"where": _where(run)}
    if len(read) > 2:
        known["notes"] = (said("in-epochs-after-another", again=len(again), epochs=len(read) - 1),)
    if _ascending(first):
        return _answer("found", "not-shuffled", evidence, **known)
    if repeat.first == repeat.lag == 1 and second.part is None:
        key = "second-epoch-repeats-global-batches" if together else "second-epoch-repeats-order"
        return _answer("found", key, evidence, **known)
    key = "global-batches-repeat" if together else "order-repeats"
    return _answer("found", key, evidence, **known, first=first.label, second=second.label)


def _where(run: Run) -> str | None:
    return str(run.fact("loader_where", "")) or None


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
        clear = _answer("clear", "second-epoch-in-another-order", evidence)
    else:
        clear = _answer("clear", "each-epoch-in-another-order", evidence, epochs=len(read))
    comes_again = any(find(b.copies[0], a.copies[0])[1].any() for a, b in itertools.pairwise(read))
    if read[0].key == "digest" and not comes_again:
        return _answer("inconclusive", "no-sample-comes-again", evidence)
    return unless_contents_change(clear, run)
