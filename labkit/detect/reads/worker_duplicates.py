"""Does one rank read the same sample again and again within an epoch?

An IterableDataset that does not ask which DataLoader worker it runs in is read whole by each: every sample comes as
often as there are workers. A loop that asks the loader for its first batch at every step reads that batch alone.
Sampling with replacement repeats too, but unevenly; data with equal samples, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..explanations import COINCIDENCE, EQUAL_SAMPLES, split_by_count, surprise_of_some, unless_contents_change
from ..verdict import Verdict, answering
from .measures import Reads, dataset_size, every_epoch, filling
from .over_epochs import judge_each, over_epochs, too_short

NAME = "worker-duplicates"
QUESTION = "Does one rank read a sample several times in an epoch?"
_answer = answering(NAME, QUESTION)

MORE_THAN_ALL = 1.5
"""A rank that reads this many times the data set in an epoch repeats samples, whatever the data hold."""


def detect(record: Record) -> Verdict:
    """Judge each epoch of the run under study, each rank for itself."""
    return unless_contents_change(_judge(record.run), record.run)


def _judge(run: Run) -> Verdict:
    parts = [part for epoch in every_epoch(run) for part in epoch.parts]
    if not any(seen.total for seen in parts):
        return _answer(
            "not_applicable",
            cause="the program recorded no samples",
            fix="record each batch with probe.samples(name, batch) or read it through probe.batches(loader)",
        )
    workers = run.fact("workers", 0)
    facts = _Facts(
        dataset_size(run),
        workers if isinstance(workers, int) else 0,
        str(run.fact("loader_where", "")) or None,
        _no_accident(parts, dataset_size(run)),
    )
    return over_epochs(judge_each(run, lambda seen: _judge_epoch(seen, facts)))


@dataclass(frozen=True)
class _Facts:
    """What an epoch is judged by.

    Attributes:
        size, workers, where: as the program declared them.
        no_accident: how often samples are read evenly, where drawing with replacement would hardly come to that.
    """

    size: int | None
    workers: int
    where: str | None
    no_accident: frozenset[int]


def _most_even(of_rank: Sequence[int | None]) -> int | None:
    """How often the rank that repeats most reads each of its samples, if it reads all equally often."""
    return max((times for times in of_rank if times), default=None)


def _no_accident(parts: Sequence[Reads], size: int | None) -> frozenset[int]:
    """How often a rank reads each of its samples in some epochs, where draws with replacement would hardly come to that.

    Of N samples, u are drawn t times each with a chance of (N choose u) (ut)! / (t!^u N^(ut)).
    """
    among = max([size or 0, *(seen.unique for seen in parts)])
    surprises: dict[int, list[float]] = {}
    for seen in parts:
        times = _most_even(seen.even_repeats_of_rank)
        if times is not None and times > 1:
            longest = max(
                len(keys) for keys, own in zip(seen.of_rank, seen.even_repeats_of_rank, strict=True) if own == times
            )
            surprises.setdefault(times, []).append(_surprise_of_even(longest, times, among))
    ranks = parts[0].world_size
    rare = (times for times, of_epochs in surprises.items()
            if surprise_of_some(of_epochs, len(parts)) - len(of_epochs) * math.log(ranks) > COINCIDENCE)  # fmt: skip
    return frozenset(rare)


def _surprise_of_even(draws: int, times: int, among: int) -> float:
    different = draws // times
    ways = math.lgamma(among + 1) - math.lgamma(different + 1) - math.lgamma(max(0, among - different) + 1)
    return draws * math.log(among) - ways - math.lgamma(draws + 1) + different * math.lgamma(times + 1)


def _judge_epoch(seen: Reads, facts: _Facts) -> Verdict:
    size, workers = facts.size, facts.workers
    if not seen.total:
        return too_short(_answer("inconclusive", cause="nothing was read in this epoch", fix="run a whole epoch"))
    times = seen.even_repeats or _most_even(seen.even_repeats_of_rank)
    evidence = {
        "repeated_reads": Quantity(seen.within_ranks, "reads"),
        "reads_of_a_sample_by_one_rank": Quantity(times or 1, "reads"),
        "told_apart_by": Quantity(seen.key),
    }
    if workers:
        evidence["workers"] = Quantity(workers, "a rank")
    if seen.one_batch and times != workers:
        return _one_batch(seen, facts, evidence)
    # one a rank, where a loader evens the steps out, or what fills the last batches up
    allowed = max(seen.world_size, filling(seen, size))
    if seen.within_ranks <= allowed and (times or 1) == 1:
        if not seen.complete:
            return too_short(
                _answer(
                    "inconclusive",
                    evidence,
                    cause="no rank repeated a sample, but the run ended before the epoch, and workers may repeat later",
                    fix="run a whole epoch",
                )
            )
        return _answer("clear", evidence, cause="each rank reads a sample at most once an epoch")
    no_accident = times in facts.no_accident or workers == times
    certain = seen.sure or _more_reads_than_copies_make(seen, size)
    # each worker makes batches of its own
    if times is not None and 2 <= times <= len(seen.sizes) and no_accident and certain:
        return _evenly(seen, times, facts, evidence)
    if not seen.sure and seen.within_ranks <= EQUAL_SAMPLES * seen.total:
        return _answer("clear", evidence, cause="each rank reads a sample at most once an epoch; a few samples are equal")
    return _answer(
        "inconclusive",
        evidence,
        cause="ranks read samples repeatedly, but not all equally often: sampling with replacement does that"
        if not times
        else "ranks meet every sample equally often, but by hashes of the content: the data set itself may hold copies"
        if not seen.sure
        else "ranks read every sample equally often, but these are too few to rule out sampling with replacement",
        fix="record the samples' ids too, with ids_at= or probe.samples(name, batch, ids), and run a whole epoch without "
        "replacement",
    )


def _one_batch(seen: Reads, facts: _Facts, evidence: dict[str, Quantity]) -> Verdict:
    steps = len(seen.batches[0])
    return _answer(
        "found",
        evidence,
        cause=f"every one of {steps} steps reads the same {len(seen.batches[0][0])} samples",
        fix="make the iterator once an epoch (for batch in loader); next(iter(loader)) in the loop starts over each "
        "time. Where one batch was chosen to see whether a model can learn it, this is expected",
        where=facts.where,
        waste=1 - 1 / steps,
    )


def _evenly(seen: Reads, times: int, facts: _Facts, evidence: dict[str, Quantity]) -> Verdict:
    """Every sample as often as every other: of all ranks, or of some alone."""
    ranks = [at for at, own in enumerate(seen.even_repeats_of_rank) if own == times]
    which = "a rank" if seen.even_repeats == times else f"rank {ranks[0]}"
    share = sum(len(seen.of_rank[at]) for at in ranks) / seen.total
    return _answer(
        "found",
        evidence,
        cause=f"{which} reads every sample {times} times in one epoch"
        + (f": each of its {facts.workers} workers yields all of its data" if facts.workers == times else ""),
        fix="in the IterableDataset's __iter__, take every (W·workers)-th item: index by rank and by "
        "torch.utils.data.get_worker_info()",
        where=facts.where,
        waste=(1 - 1 / times) * (1.0 if seen.even_repeats == times else share),
    )


def _more_reads_than_copies_make(seen: Reads, size: int | None) -> bool:
    """Whether there are more reads than equal samples in the data, or ranks that read the same, account for."""
    if size is None or not seen.complete:
        return False
    alone = seen.across_ranks < seen.world_size and not split_by_count(seen, size)
    return alone or any(len(keys) >= MORE_THAN_ALL * size for keys in seen.of_rank)
