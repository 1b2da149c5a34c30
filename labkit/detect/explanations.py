"""Innocent explanations of repeated reads, shared by the detectors: what they must rule out before they say `found`.

Samplers pad; loaders fill their last batch up; data hold equal samples; some samplers draw with replacement. Each
question here is whether one of these could have made what was read, chance included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..record.schema import Run
from .reads.measures import Reads, dataset_size, different_samples, filling, only_the_last_step_repeats, sampler_padding
from .verdict import Verdict

MEETINGS = 5.0
"""Chance events to expect before their absence is evidence: exp(-5) is 0.7 %."""

RARE = math.log(10_000)
"""-log of the chance below which drawing with replacement no longer explains how often samples are repeated."""

COINCIDENCE = math.log(1_000_000)
"""-log of the chance below which equal orders are no coincidence."""

ENOUGH = 10
"""Different samples to see before a pattern over all of them is no accident: 1 in 10! is below a millionth."""

UNSPLIT = 1.5
"""Ranks that together read this many times the data set, each sample counted once a rank, do not share it out."""

EQUAL_SAMPLES = 0.01
"""Share of reads that a few equal samples in the data may cause before hashes of the content cannot tell."""


FEW_SAMPLES = 0.1
"""Share of reads above which repeats in place of others are no single sample that a loader replaced."""


def split_by_count(seen: Reads, size: int | None) -> bool:
    """Whether a whole epoch has no more reads than the data set has samples, but for padding and filling."""
    if size is None or not seen.complete:
        return False
    surplus = seen.total - size
    if len(seen.sizes) > 1 and seen.full_steps[-1] and surplus < seen.sizes[-1]:
        return True
    return surplus <= sampler_padding(size, seen.world_size)


def allowed_repeats(seen: Reads, size: int | None) -> int:
    """Reads of other ranks' samples that equal steps on all ranks explain.

    A sampler repeats fewer than W samples, and only at the end of an epoch. It repeats none in place of samples that it
    leaves out.
    """
    at_the_end = seen.complete or seen.unique == size or only_the_last_step_repeats(seen)
    in_place_of_others = size is not None and seen.unique < size <= seen.total
    if in_place_of_others and seen.across_ranks >= FEW_SAMPLES * seen.total:
        return 0
    return max(seen.world_size - 1, filling(seen, size)) if at_the_end else 0


def one_filled_batch(seen: Reads, size: int | None) -> bool:
    """Whether the epoch is one step in which samples are repeated only after all were read: filling, or overlap.

    Ranks that read W times the data in it have each read all of it: no filling.
    """
    if size is None or len(seen.sizes) != 1 or seen.total <= size:
        return False
    if seen.within_ranks:
        return True  # a batch that is larger than the data: on every rank the loader goes through them again
    if seen.total >= seen.world_size * size:
        return False
    return not seen.sure or (seen.unique == size and int(np.ptp(seen.copies[1])) <= 1)


def copies_in_data(seen: Reads, size: int | None) -> bool:
    """Whether equal samples in the data could be what ranks seem to read twice. Never where keys
    are sure.

    In a whole epoch the number of reads decides: equal samples do not make it longer. In a part of one, how often a
    rank alone meets an equal sample does: a pair that is shared out at random lands on two ranks W-1 times as often.
    """
    if seen.sure:
        return False
    if size is not None and seen.complete:
        return split_by_count(seen, size)
    return seen.across_ranks <= 2 * (seen.world_size - 1) * seen.within_ranks + MEETINGS * seen.world_size


def with_replacement(seen: Sequence[Reads], size: int | None, around: Sequence[Reads] = ()) -> bool:
    """Whether ranks that draw with replacement could have read these epochs, uniformly or by weights.

    n draws of N hold no repeat with a chance of (1-1/N)(1-2/N)...(1-(n-1)/N). On average they repeat
    n - N(1-(1-1/N)^n) samples, with less spread than its root; weights repeat more, on one rank as on several.

    Args:
        around: the epochs in which ranks are counted to meet, where `seen` were picked because in them they did.
    """
    if any(one.unique >= ENOUGH and (one.even_repeats or 1) > 1 for one in seen):
        return False
    among = max([size or 0, *(one.unique for one in (*seen, *around))])
    alone = sum(one.within_ranks for one in seen)
    draws = [len(keys) for one in seen for keys in one.of_rank]
    if alone == 0 and sum(_surprise_of_no_repeat(n, among) for n in draws) > RARE:
        return False
    within = sum(n - _different(n, among) for n in draws)
    if alone < within and surprise_of_count(alone, within) > RARE:
        return False
    met, across = 0, 0.0
    for one in around or seen:
        due = sum(_different(len(keys), among) for keys in one.of_rank) - _different(one.total, among)
        met += one.across_ranks
        repeats = one.within_ranks + 2 * math.sqrt(one.within_ranks)  # as many as there may be on average
        across += max(due, (one.world_size - 1) * repeats)
    return met <= across or surprise_of_count(met, across) <= RARE


def surprise_of_count(count: float, mean: float) -> float:
    """-log of a bound on the chance of so far a count, if events come singly and `mean` are to be expected (Chernoff)."""
    if mean <= 0:
        return math.inf if count else 0.0
    return (count * math.log(count / mean) if count else 0.0) - count + mean


def surprise_of_equal_reads(seen: Reads, reads: int) -> float:
    """-log of the chance that one rank draws, so many times, what another does; the data as they were read by all."""
    shares = seen.copies[1] / seen.total
    return reads * -math.log(float((shares**2).sum()))


def surprise_of_some(surprises: Sequence[float], among: int) -> float:
    """-log of the chance that so unlikely things happen in some of `among` epochs."""
    some = len(surprises)
    ways = math.lgamma(among + 1) - math.lgamma(some + 1) - math.lgamma(among - some + 1)
    return sum(surprises) - ways


def _different(draws: int, among: int) -> float:
    """How many different samples so many draws with replacement hold, on average."""
    return among * (1 - (1 - 1 / among) ** draws)


def listed_several_times(seen: Reads, size: int | None) -> bool:
    """Whether a list that holds some samples several times, shared out at random, could have made what was read.

    Of P pairs 1/W fall to one rank, and the others to two: W-1 times as many, with a spread of their difference of
    the root of (W-1)·P.
    """
    if seen.within_ranks < MEETINGS or (seen.even_repeats or 1) > 1:
        return False
    if size is not None and int(seen.ranks_reading.sum()) >= UNSPLIT * size:
        return False
    others, pairs = seen.world_size - 1, seen.across_ranks + seen.within_ranks
    return seen.across_ranks <= others * seen.within_ranks + 4 * math.sqrt(others * pairs)


def _surprise_of_no_repeat(draws: int, among: int) -> float:
    """-log of the chance that so many draws with replacement hold no repeat."""
    return -sum(math.log1p(-i / among) for i in range(draws)) if draws <= among else math.inf


def unless_contents_change(verdict: Verdict, run: Run) -> Verdict:
    """The verdict; but what is clear by hashes alone is not, where a sample has another content each time it is read."""
    by_content = "told_apart_by" in verdict.evidence and verdict.evidence["told_apart_by"].value == "digest"
    size = dataset_size(run) if verdict.status == "clear" and by_content else None
    if size is None or (different := different_samples(run)) <= size:
        return verdict
    return replace(
        verdict,
        status="inconclusive",
        reason="contents-change",
        numbers={"different": different, "samples": size},
        notes=(),
    )


def unless_ids_are_doubtful(verdict: Verdict, seen: Reads) -> Verdict:
    """The verdict; but what is found by ids that stand for another content on each rank is open."""
    if verdict.status != "found" or not seen.doubtful:
        return verdict
    return replace(
        verdict,
        status="inconclusive",
        reason="ids-are-doubtful",
        numbers={},
        notes=(),
        waste=None,
    )


def nothing_to_reduce(run: Run, answer: Callable[..., Verdict]) -> Verdict:
    """The verdict on a run that has one rank, or of which no DDP module was watched: no reduction can be counted."""
    if run.world_size == 1:
        return answer("not_applicable", "one-rank-reduces-nothing")
    return answer("not_applicable", "no-ddp-module-watched")
