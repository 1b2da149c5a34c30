"""What a run's own noise leaves open: how far a median may be off, and whether slow steps picked one rank or met it by luck.

Machines jitter, pause, and run other programs. So a time is judged by what it varies by in the run itself, never by a
constant alone; and a rank is blamed only for what noise that strikes ranks at random would hardly do. Pure; arrays in,
numbers out.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

FLOOR_S = 0.003
"""Differences under this are the scheduler's: it gives a thread a few milliseconds before the next one has its turn."""

CHANCE = 1e-3
"""How often noise may blame a rank that is like the others."""

ONE_BURST_S = 0.2
"""Time that one burst of another program may cost a rank. What was lost in all must be more than this."""

WORTH = 0.1
"""Of the ranks' time: a rank that costs the others less is not worth a word."""

GAP = 2
"""Steps between two slow ones that still make them one stretch."""

LONG, LONG_SHARE, DENSE = 36, 0.35, 0.75
"""A stretch that is no burst: so many steps, so much of the run, and of its own steps so many slow."""

FEW = 20
"""In fewer steps than these a rank must be slow in each, or a burst may have been all of the run."""

STRETCHES, EACH = 10, 6
"""Parts into which a run is cut to see whether a rank is slow all along, and the steps that each must have."""


def median_interval(values: Sequence[float] | np.ndarray, chance: float = 0.05) -> tuple[float, float]:
    """Where the median lies but for `chance`, by ranks in order: no distribution is assumed.

    All values, from the least to the greatest, where they are too few to leave any out; the chance is then 2·(1/2)^n.

    >>> median_interval([3.1, 3.0, 3.2, 9.9, 3.1, 3.0, 3.3, 3.1])
    (3.0, 9.9)
    >>> median_interval([3.1, 3.0, 3.2, 9.9, 3.1, 3.0, 3.3, 3.1, 3.2])
    (3.0, 3.3)
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    count = len(ordered)
    cut = bisect.bisect_right(range(1, (count + 1) // 2), chance, key=lambda cut: 2 * _at_most(cut - 1, count, 0.5))
    cut = max(0, cut - 1)
    return float(ordered[cut]), float(ordered[count - 1 - cut])


@dataclass(frozen=True, eq=False)
class Slow:
    """What is slow about one rank.

    Attributes:
        rank: which.
        steps: indices of its slow steps, in order.
        stretches: in how many they lie; 0 where they cost too little to look.
        cost: what it takes longer than the middle of the others in these steps, of all time of the steps.
        excess_s: the same in seconds, all together.
        times: how many times as long as the others it takes in them, the median.
        certain: whether noise that strikes ranks at random would hardly do this.
        by_turns: whether the others are struck as often, and enough was seen to say so.
    """

    rank: int
    steps: np.ndarray
    stretches: int
    cost: float
    excess_s: float
    times: float
    certain: bool
    by_turns: bool

    @property
    def begin(self) -> int:
        """Index of its first slow step."""
        return int(self.steps[0]) if len(self.steps) else 0

    @property
    def share(self) -> float:
        """Of the steps from its first slow one to its last, those that are slow."""
        return len(self.steps) / (int(self.steps[-1]) + 1 - self.begin) if len(self.steps) else 0.0

    @property
    def matters(self) -> bool:
        """Whether it costs enough to be worth a word."""
        return self.cost >= WORTH

    @property
    def proven(self) -> bool:
        """Whether it costs enough, in time that no single burst explains, and noise would hardly do it."""
        return self.matters and self.certain and self.excess_s >= ONE_BURST_S


def slow_ranks(
    seconds: np.ndarray, *, times: float = 1.0, least_s: float = FLOOR_S, whole_s: np.ndarray | None = None
) -> list[Slow]:
    """What is slow about each rank, the one that costs most first.

    Args:
        seconds: [steps, ranks]: what each rank took for its own part of a step, or when it was done with it.
        times: as many times as long as the middle of the others a slow step is.
        least_s: and by so many seconds longer.
        whole_s: [steps]: what the step took in all, to hold the cost against; the longest of `seconds` if None.
    """
    middle, usual = _middle_of_others(seconds), float(np.median(seconds))
    excess = seconds - middle
    slow = excess > np.maximum((times - 1) * middle, max(least_s, FLOOR_S))
    whole = float((seconds.max(axis=1) if whole_s is None else whole_s).sum())
    # another rank's step counts as slow also where several are so at once: two that pause together are no better than one
    ever = seconds - usual > max((times - 1) * usual, least_s, FLOOR_S)
    found = [_of_rank(rank, slow, ever, excess, middle, whole) for rank in range(seconds.shape[1])]
    return sorted(found, key=lambda one: -one.cost)


def _middle_of_others(seconds: np.ndarray) -> np.ndarray:
    """[steps, ranks]: the middle of the other ranks in this step, or over all steps if that is more.

    A step that is long on all ranks, as the first one or one with a pause, makes none of them slow.
    """
    ranks = seconds.shape[1]
    found = np.empty_like(seconds)
    for rank in range(ranks):
        others = np.delete(seconds, rank, axis=1)
        found[:, rank] = np.maximum(np.median(others, axis=1), np.median(others))
    return found


def _of_rank(rank: int, slow: np.ndarray, ever: np.ndarray, excess: np.ndarray, middle: np.ndarray, whole: float) -> Slow:
    at = np.flatnonzero(slow[:, rank])
    lost = float(excess[at, rank].sum())
    times = float(np.median(1 + excess[at, rank] / np.maximum(middle[at, rank], 1e-12))) if len(at) else 1.0
    found = Slow(rank, at, 0, lost / whole if whole > 0 else 0.0, lost, times, certain=False, by_turns=False)
    if not found.matters:
        return found
    ranks, own = slow.shape[1], _stretches(slow[:, rank])
    counts = [len(own if other == rank else _stretches(ever[:, other])) for other in range(ranks)]
    luck, enough = _luck(counts, rank, own, len(slow)), ranks ** (1.0 - sum(counts)) < CHANCE
    certain = luck < CHANCE or _steady(slow, rank) or _all_along(slow, rank)
    return replace(found, stretches=len(own), certain=certain, by_turns=enough and luck > 0.05)


def _stretches(slow: np.ndarray) -> list[tuple[int, int]]:
    """(first, one after the last) of stretches of slow steps; a few quick ones between two do not part them."""
    found: list[tuple[int, int]] = []
    for at in np.flatnonzero(slow).tolist():
        if found and at - found[-1][1] <= GAP:
            found[-1] = (found[-1][0], at + 1)
        else:
            found.append((at, at + 1))
    return found


def _luck(counts: list[int], rank: int, own: list[tuple[int, int]], steps: int) -> float:
    """The chance that stretches which strike ranks at random strike some rank so often, and at least as evenly in time.

    Evenly: in each eighth of the run. Noise that strikes one rank eight times does that once in 400.
    """
    total, parts = sum(counts), 8
    luck = len(counts) * (1.0 - _at_most(counts[rank] - 1, total, 1 / len(counts)))
    eighths = {start * parts // steps for start, _ in own}
    if len(eighths) == parts:
        luck *= sum((-1) ** j * math.comb(parts, j) * (1 - j / parts) ** counts[rank] for j in range(parts + 1))
    return min(1.0, max(0.0, luck))


def _steady(slow: np.ndarray, rank: int) -> bool:
    """Whether a rank is slow in (nearly) all steps, or in a stretch of the run that is too long for a burst."""
    steps, stretches = len(slow), [_stretches(of_rank) for of_rank in slow.T]
    for start, end in stretches[rank]:
        shares = slow[start:end].mean(axis=0)
        dense = shares[rank] >= DENSE
        quick = [own for own, share in zip(stretches, shares, strict=True) if share < DENSE]  # not slow just as it is
        others = max((b - a for own in quick for a, b in own), default=0)
        long = end - start >= max(LONG, LONG_SHARE * steps)
        whole = start <= 1 and end == steps and (slow[start:end, rank].all() or steps >= FEW)
        if dense and (long or whole) and end - start >= 3 * others:
            return True
    return False


def _all_along(slow: np.ndarray, rank: int) -> bool:
    """Whether a rank is slow now and then in (nearly) each part of the run, and the others in hardly any."""
    if len(slow) < STRETCHES * EACH:
        return False
    struck = np.array([part.any(axis=0) for part in np.array_split(slow, STRETCHES)]).sum(axis=0)
    others = np.delete(struck, rank)
    return bool(struck[rank] >= STRETCHES - 1 and others.max() <= 2 and slow[:, rank].mean() >= 0.2)


def _at_most(most: int, count: int, probability: float) -> float:
    """The chance of at most so many of `count` events of a probability each."""
    if most < 0:
        return 0.0
    log_p, log_q = math.log(probability), math.log1p(-probability)
    logs = [
        math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) + k * log_p + (count - k) * log_q
        for k in range(min(most, count) + 1)
    ]
    return min(1.0, math.fsum(map(math.exp, logs)))
