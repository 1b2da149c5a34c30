"""Innocent explanations of repeated reads, shared by the detectors: what they must rule out before they say `found`.

Samplers pad; loaders fill their last batch up; data hold equal samples; some samplers draw with replacement. Each
question here is whether one of these could have made what was read, chance included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..record.measures import Reads, dataset_size, different_samples, filling, sampler_padding
from ..record.schema import Run
from ..words import plural
from .verdict import Verdict

MEETINGS = 5.0
"""Chance events to expect before their absence is evidence: exp(-5) is 0.7 %."""

ENOUGH = 10
"""Different samples to see before a pattern over all of them is no accident: 1 in 10! is below a millionth."""

UNSPLIT = 1.5
"""Ranks that together read this many times the data set, each sample counted once a rank, do not share it out."""

EQUAL_SAMPLES = 0.01
"""Share of reads that a few equal samples in the data may cause before hashes of the content cannot tell."""


def split_by_count(seen: Reads, size: int | None) -> bool:
    """Whether a whole epoch has no more reads than the data set has samples, but for padding and filling."""
    if size is None or not seen.complete:
        return False
    surplus = seen.total - size
    if len(seen.global_batches) > 1 and seen.full_steps[-1] and surplus < len(seen.global_batches[-1]):
        return True
    return surplus <= sampler_padding(size, seen.world_size)


def allowed_repeats(seen: Reads, size: int | None) -> int:
    """Reads of other ranks' samples that equal steps on all ranks explain.

    A sampler repeats fewer than W samples, and only at the end of an epoch.
    """
    at_the_end = seen.complete or seen.unique == size
    return max(seen.world_size - 1, filling(seen, size)) if at_the_end else 0


def one_filled_batch(seen: Reads, size: int | None) -> bool:
    """Whether the epoch is one step in which samples are repeated only after all were read: filling, or overlap.

    Ranks that read W times the data in it have each read all of it: no filling.
    """
    if size is None or len(seen.global_batches) != 1 or not size < seen.total < seen.world_size * size:
        return False
    return seen.key == "digest" or (seen.unique == size and int(np.ptp(seen.copies[1])) <= 1)


def copies_in_data(seen: Reads, size: int | None) -> bool:
    """Whether equal samples in the data could be what ranks seem to read twice. Never by ids.

    In a whole epoch the number of reads decides: equal samples do not make it longer. In a part of one, how often a
    rank alone meets an equal sample does: a pair that is shared out at random lands on two ranks W-1 times as often.
    """
    if seen.key == "id":
        return False
    if size is not None and seen.complete:
        return split_by_count(seen, size)
    return seen.across_ranks <= 2 * (seen.world_size - 1) * seen.within_ranks + MEETINGS * seen.world_size


def with_replacement(seen: Reads, size: int | None) -> bool:
    """Whether ranks that draw with replacement could have read this, uniformly or by weights.

    n draws of N hold no repeat with a chance of (1-1/N)(1-2/N)...(1-(n-1)/N). On average they repeat
    n - N(1-(1-1/N)^n) samples, with less spread than its root; weights repeat more, on one rank as on several.
    """
    if seen.unique >= ENOUGH and (seen.even_repeats or 1) > 1:
        return False
    among, draws = max(size or 0, seen.unique), [len(keys) for keys in seen.of_rank]
    if seen.within_ranks == 0 and sum(_surprise_of_no_repeat(n, among) for n in draws) > MEETINGS:
        return False
    different = [among * (1 - (1 - 1 / among) ** n) for n in draws]
    within = sum(draws) - sum(different)
    across = sum(different) - among * (1 - (1 - 1 / among) ** sum(draws))
    across = max(across, (seen.world_size - 1) * seen.within_ranks)
    return seen.within_ranks >= within - 3 * math.sqrt(within) and seen.across_ranks <= across + 3 * math.sqrt(across)


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
    return seen.across_ranks <= others * seen.within_ranks + 3 * math.sqrt(others * pairs)


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
        cause=f"{different:,} different contents were read of {plural(size, 'sample')}: a sample is not the same each time "
        "(augmentation, padding to a batch), and hashes of the content do not show it again",
        fix="record the samples' ids too, with ids_at= or probe.samples(name, batch, ids), and the ids decide",
    )


def nothing_to_reduce(run: Run, answer: Callable[..., Verdict]) -> Verdict:
    """The verdict on a run that has one rank, or of which no DDP module was watched: no reduction can be counted."""
    if run.world_size == 1:
        return answer("not_applicable", cause="one rank reduces nothing", fix="run with 2 ranks or more")
    return answer(
        "not_applicable",
        cause="no DDP module was watched",
        fix="watch it with watch_ddp(ddp, probe, optimizer=optimizer)",
    )
