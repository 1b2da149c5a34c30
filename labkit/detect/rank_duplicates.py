"""Do ranks read the same data?

Three signs, each exact: all ranks read the same batch at the same step; together they read far more samples an epoch
than the data set holds; a sample is read by more ranks than padding explains. Equal content is not yet a duplicate read:
data may hold equal samples. From ids that is plain; from hashes of the content it follows from how often a rank alone
meets an equal sample, and from the number of reads.
"""

from __future__ import annotations

from ..record.measures import (
    Quantity,
    Reads,
    dataset_size,
    expected_unique_share,
    first_epoch,
    padding,
    sampler_padding,
)
from ..record.schema import Record
from .verdict import Verdict, answering

NAME = "rank-duplicates"
QUESTION = "Do the ranks read the same data?"
_answer = answering(NAME, QUESTION)

UNSPLIT = 1.5
"""Ranks that together read this many times the data set, each sample counted once a rank, do not share it out."""

MEETINGS = 5.0
"""Chance meetings to expect before their absence says that ranks are split: exp(-5) is 0.7 %."""

EQUAL_SAMPLES = 0.01
"""Share of reads that equal samples in the data may cause before hashes alone cannot tell."""

IDENTICAL_FIX = (
    "give the DataLoader a DistributedSampler(data, world_size, rank) instead of shuffle=True, and call "
    "sampler.set_epoch(epoch) at the start of each epoch"
)


def detect(record: Record) -> Verdict:
    """Judge the first epoch of the run under study."""
    run = record.run
    if run.world_size == 1:
        return _answer("not_applicable", cause="one rank cannot repeat what another reads", fix="run with 2 ranks or more")
    seen = first_epoch(run)
    if seen is None or seen.total == 0:
        return _answer(
            "not_applicable",
            cause="the program recorded no samples",
            fix="record each batch with probe.samples(name, batch) or read it through probe.batches(loader)",
        )
    size = dataset_size(run)
    where = str(run.fact("loader_where", "")) or None
    evidence = _evidence(seen, size, run.fact("batch_size"))
    split_by_count = size is not None and seen.complete and seen.total <= size + sampler_padding(size, seen.world_size)
    waste = 1 - float(seen.unique_shares.mean())

    if seen.identical_steps >= 0.9:
        if seen.key == "digest" and split_by_count:
            return _cannot_tell_equal_data(evidence, seen)
        share = "every step" if seen.identical_steps == 1 else f"{seen.identical_steps:.0%} of the steps"
        return _answer(
            "found",
            evidence,
            cause=f"in {share} all {seen.world_size} ranks read the same samples in the same order: "
            f"they do the work of one",
            fix=IDENTICAL_FIX,
            where=where,
            waste=waste,
        )
    read_by_ranks = int(seen.ranks_reading.sum())
    if size is not None and read_by_ranks >= UNSPLIT * size and seen.total >= UNSPLIT * size:
        return _answer(
            "found",
            evidence,
            cause=f"the {seen.world_size} ranks together read {read_by_ranks / size:.1f} times the data set in one epoch: "
            "each goes through all of it in an order of its own",
            fix=IDENTICAL_FIX,
            where=where,
            waste=waste,
        )
    extra = seen.across_ranks - padding(seen, size)
    if extra > _tolerated(seen, size):
        if seen.key == "digest" and split_by_count and extra <= EQUAL_SAMPLES * seen.total:
            return _answer("clear", evidence, cause="the ranks share the data out; a few samples are equal")
        if _repeats_of_their_own(seen) or (seen.key == "digest" and split_by_count):
            return _cannot_tell_equal_data(evidence, seen)
        return _answer(
            "found",
            evidence,
            cause=f"{extra:,} reads are of samples that another rank reads too, {extra / seen.total:.0%} of all: "
            "the ranks' shares of the data overlap",
            fix="build the shares from one permutation that is the same on every rank, and take every W-th of it, as "
            "DistributedSampler does",
            where=where,
            waste=waste,
        )
    return _clear_if_it_would_show(seen, size, evidence)


def _clear_if_it_would_show(seen: Reads, size: int | None, evidence: dict[str, Quantity]) -> Verdict:
    """No overlap was seen: an answer only if ranks that shuffle for themselves would have met by now."""
    if seen.complete:
        return _answer("clear", evidence, cause="no sample is read by two ranks, but for the sampler's padding")
    if size is None:
        return _answer(
            "inconclusive",
            evidence,
            cause="no sample was read twice, but the run ended before the epoch and the data set's size is not known",
            fix="run a whole epoch, or declare dataset_size",
        )
    expected_unique = size * (1 - _product(1 - min(1.0, len(keys) / size) for keys in seen.of_rank))
    meetings = seen.total - expected_unique
    if meetings >= MEETINGS:
        return _answer(
            "clear",
            evidence | {"meetings_expected_if_unsplit": Quantity(meetings, "samples")},
            cause="no sample is read by two ranks, where ranks that each shuffle all data would have met often",
        )
    return _answer(
        "inconclusive",
        evidence | {"meetings_expected_if_unsplit": Quantity(meetings, "samples")},
        cause=f"no sample was read twice, but the run saw {seen.total:,} of {size:,} samples only: "
        "ranks that each shuffle all data might not have met yet",
        fix="run a whole epoch, or more steps",
    )


def _cannot_tell_equal_data(evidence: dict[str, Quantity], seen: Reads) -> Verdict:
    if seen.key == "id":
        return _answer(
            "inconclusive",
            evidence,
            cause="single ranks read samples repeatedly as well, as a sampler that draws with replacement does",
            fix="draw without replacement for one epoch, and judge that",
        )
    return _answer(
        "inconclusive",
        evidence,
        cause="ranks read equal samples, but the data set itself seems to hold equal samples: hashes of the content "
        "cannot tell one from the other",
        fix="return the sample's id as the third item of a batch, and the ids decide",
    )


def _repeats_of_their_own(seen: Reads) -> bool:
    """Whether single ranks meet equal samples so often that ranks meeting each other's follows.

    A pair of equal samples that is shared out at random lands on two ranks W-1 times as often as on one.
    """
    within = seen.within_ranks
    return within > 0 and seen.across_ranks <= 2 * (seen.world_size - 1) * within + 10


def _tolerated(seen: Reads, size: int | None) -> int:
    """Reads across ranks that padding may cause, beyond what `padding` could prove to be the sampler's.

    A sampler repeats fewer than W samples. Some loaders fill the last global batch from the start of the epoch: that
    can only be told from overlap if there are several steps and the epoch is longer than the data by less than a batch.
    """
    if not seen.complete:
        return 0
    by_sampler = seen.world_size - 1
    if size is None or len(seen.global_batches) < 2:
        return by_sampler
    surplus = seen.total - size
    return max(by_sampler, surplus) if surplus < len(seen.global_batches[-1]) else by_sampler


def _evidence(seen: Reads, size: int | None, batch: object) -> dict[str, Quantity]:
    found = {
        "samples_per_epoch": Quantity(seen.total, "samples"),
        "unique_samples": Quantity(seen.unique, "samples"),
        "unique_share_of_global_batch": Quantity(seen.unique_share_of_global_batch, "of its samples"),
        "identical_steps": Quantity(seen.identical_steps, "of the steps"),
        "told_apart_by": Quantity(seen.key),
    }
    if size is not None:
        found["dataset_size"] = Quantity(size, "samples")
        if isinstance(batch, int) and batch <= size:
            share = expected_unique_share(size, batch, seen.world_size)
            found["unique_share_if_each_shuffled_all"] = Quantity(share, "of its samples", "simulated")
    return found


def _product(factors) -> float:
    result = 1.0
    for factor in factors:
        result *= factor
    return result
