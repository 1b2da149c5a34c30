"""Which epochs come in the order of an earlier one, and how unlikely chance makes that. Pure; no torch, no I/O."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...record.schema import Run
from .batches import counted, names_whatever_order
from .epoch_reads import Reads
from .epochs import every_epoch


@dataclass(frozen=True, eq=False)
class Repeat:
    """Epochs in a row of which each comes in the order of the one that is `lag` before it.

    Attributes:
        first, last: places of the epochs among those compared.
        lag: how far back the epoch lies that each repeats.
        ranks: how many ranks repeat theirs, in the epoch in which the most do.
        surprise: -log of a bound on the chance that orders drawn anew each time do so anywhere in the run.
    """

    first: int
    last: int
    lag: int
    ranks: int
    surprise: float


@dataclass(frozen=True, eq=False)
class Orders:
    """The orders in which lanes (ranks, or all together) read, epoch by epoch.

    Attributes:
        of: [lane, epoch] a number for each order, equal for equal orders, as far as the shorter epoch goes; -1 where
            nothing was read.
        surprise: [lane, epoch] -log of the chance that its samples, drawn in a new order, come in a given one.
    """

    of: np.ndarray
    surprise: np.ndarray

    @cached_property
    def _weights(self) -> np.ndarray:
        """[lane, epoch] the surprise; lanes with one order, as identical ranks have, surprise but once."""
        alike = np.empty(self.of.shape)
        for place, of_place in enumerate(self.of.T):
            _, which, times = np.unique(of_place, return_inverse=True, return_counts=True)
            alike[:, place] = times[which]
        return self.surprise / alike

    def same(self, lag: int) -> np.ndarray:
        """[lane, epoch - lag] whether a lane's order is that of `lag` epochs before."""
        return (self.of[:, lag:] == self.of[:, :-lag]) & (self.of[:, lag:] >= 0)

    @property
    def lags(self) -> list[int]:
        """How far back the nearest epoch of an equal order lies, for any epoch on any lane; each once."""
        found = set()
        for of_lane in self.of:
            before: dict[int, int] = {}
            for place, order in enumerate(of_lane.tolist()):
                if order >= 0 and order in before:
                    found.add(place - before[order])
                before[order] = place
        return sorted(found)

    def repeats(self) -> Iterator[Repeat]:
        """All stretches of epochs that repeat what came before them at one distance, on any lane."""
        lanes, count = self.of.shape
        for lag in self.lags:
            same = self.same(lag)
            ranks = same.sum(axis=0)
            surprise = (same * self._weights[:, lag:]).sum(axis=0) - np.array([math.log(math.comb(lanes, k)) for k in ranks])
            looked_at = math.log(2 * (count - 1) if lag == 1 else count**2)  # places at which such a stretch may begin
            edges = np.flatnonzero(np.diff(np.concatenate([[0], ranks > 0, [0]]).astype(np.int8)))
            for start, end in zip(edges[::2], edges[1::2], strict=True):
                total = float(surprise[start:end].sum()) - looked_at
                yield Repeat(int(start) + lag, int(end) + lag - 1, lag, int(ranks[start:end].max()), total)


def orders_of_ranks(read: Sequence[Reads]) -> Orders:
    """The order in which each rank reads, epoch by epoch."""
    lanes = [[seen.of_rank[rank] for seen in read] for rank in range(read[0].world_size)]
    return _orders(
        lanes, lambda lane, place, length: _surprise(lanes[lane][place][:length], (), read[place].within_ranks == 0)
    )


def orders_of_batches(read: Sequence[Reads]) -> Orders:
    """The order in which global batches come, whatever rank reads which part of one."""
    names: dict[bytes, int] = {}
    named = [[names.setdefault(name, len(names)) for name in names_whatever_order(seen.global_batches)] for seen in read]

    def surprise(_: int, place: int, length: int) -> float:
        whole = read[place].global_batches[:length]
        return _surprise(whole.keys, whole.sizes.tolist(), read[place].each_once)

    return _orders([[np.array(of_epoch, np.int64) for of_epoch in named]], surprise)


def order_repeats(run: Run) -> bool | None:
    """Whether every rank read some epoch in the order of one before it; None with fewer than two epochs."""
    read = [epoch.whole for epoch in every_epoch(run)]
    if len(read) < 2:
        return None
    orders = orders_of_ranks(read)
    return any(bool(orders.same(lag).all(axis=0).any()) for lag in orders.lags)


def period(keys: np.ndarray, least: int = 10) -> int | None:
    """After how many reads, `least` or more, a rank's order begins again for a whole period; None where it never does."""
    by_key = np.argsort(keys, kind="stable")
    again = np.flatnonzero(keys[by_key[1:]] == keys[by_key[:-1]])
    back = np.zeros(len(keys), np.int64)
    back[by_key[again + 1]] = by_key[again + 1] - by_key[again]
    edges = np.concatenate([[0], np.flatnonzero(np.diff(back)) + 1, [len(back)]])
    found = [int(back[a]) for a, b in itertools.pairwise(edges) if least <= back[a] <= b - a]
    return max(found, default=None)


def _orders(lanes: Sequence[Sequence[np.ndarray]], surprise: Callable[[int, int, int], float]) -> Orders:
    """Number the orders; `surprise(lane, epoch, length)` is of the first so many entries of one."""
    of = np.full((len(lanes), len(lanes[0])), -1, np.int64)
    surprises = np.zeros(of.shape)
    numbers: dict[bytes, int] = {}
    for lane, of_lane in enumerate(lanes):
        begun: dict[int, list[tuple[np.ndarray, int]]] = {}
        for place, keys in enumerate(of_lane):
            if not len(keys):
                continue
            alike = begun.setdefault(int(keys[0]), [])
            length, number = _as_before(keys, alike)
            if number is None:
                number = numbers.setdefault(keys.tobytes(), len(numbers))
            if not any(len(known) == len(keys) and of_known == number for known, of_known in alike):
                alike.append((keys, number))
            of[lane, place] = number
            surprises[lane, place] = surprise(lane, place, length)
    return Orders(of, surprises)


def _as_before(keys: np.ndarray, alike: Sequence[tuple[np.ndarray, int]]) -> tuple[int, int | None]:
    """How much of an order is that of an earlier epoch, and its number: all, or as far as the shorter of them goes."""
    for known, number in reversed(alike):
        length = min(len(known), len(keys))
        if np.array_equal(known[:length], keys[:length]):
            return length, number
    return len(keys), None


def _surprise(keys: np.ndarray, sizes: Sequence[int], each_once: bool) -> float:
    """-log of the chance of one order: of n samples, in batches of these sizes, within which the order does not count.

    What comes several times, as workers deliver it, may come in step: each different sample counts once. `each_once`: none
    does.
    """
    copies = np.ones(len(keys), np.int64) if each_once else counted(keys)[1]
    same = sum(math.lgamma(count + 1) for count in (*sizes, *copies[copies > 1].tolist()))
    return max(0.0, min(math.lgamma(len(keys) + 1) - same, math.lgamma(len(copies) + 1)))
