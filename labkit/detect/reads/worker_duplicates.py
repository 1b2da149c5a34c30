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
from .worker_streams import same_streams

NAME = "worker-duplicates"
QUESTION = "Does one rank read a sample several times in an epoch?"
_answer = answering(NAME, QUESTION)

MORE_THAN_ALL = 1.5
"""A rank that reads this many times the data set in an epoch repeats samples, whatever the data hold."""


def detect(record: Record) -> Verdict:
    """Judge each epoch of the run under study, each rank for itself."""
    run = record.run
    verdict = unless_contents_change(_judge(run), run)
    same = same_streams(run) if verdict.status != "found" else None
    if same is None:
        return verdict
    rank, workers = same
    evidence = {**verdict.evidence, "workers": Quantity(workers, "a rank"), "rank": Quantity(rank)}
    where = str(run.fact("loader_where", "")) or None
    return _answer("found", "each-worker-yields-all", evidence, where=where, waste=1 - 1 / workers, times=workers)


def _judge(run: Run) -> Verdict:
    parts = [part for epoch in every_epoch(run) for part in epoch.parts]
    if not any(seen.total for seen in parts):
        return _answer("not_applicable", "no-samples-recorded")
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
    if not seen.total:
        return too_short(_answer("inconclusive", "nothing-read-in-epoch"))
    times = seen.even_repeats or _most_even(seen.even_repeats_of_rank)
    evidence = {
        "repeated_reads": Quantity(seen.within_ranks, "reads"),
        "reads_of_a_sample_by_one_rank": Quantity(times or 1, "reads"),
        "told_apart_by": Quantity(seen.key),
    }
    if facts.workers:
        evidence["workers"] = Quantity(facts.workers, "a rank")
    if seen.one_batch and times != facts.workers:
        return _one_batch(seen, facts, evidence)
    # one a rank, where a loader evens the steps out, or what fills the last batches up
    allowed = max(seen.world_size, filling(seen, facts.size))
    if seen.within_ranks <= allowed and (times or 1) == 1:
        if not seen.complete:
            return too_short(_answer("inconclusive", "workers-may-repeat-later", evidence))
        return _answer("clear", "each-sample-once", evidence)
    if times is not None and _no_copies_and_no_chance(seen, times, facts):
        return _evenly(seen, times, facts, evidence)
    return _unevenly(seen, times, evidence)


def _no_copies_and_no_chance(seen: Reads, times: int, facts: _Facts) -> bool:
    """Whether samples read so many times each are neither copies in the data nor drawn with replacement."""
    if not 2 <= times <= len(seen.sizes):  # each worker makes batches of its own
        return False
    no_accident = times in facts.no_accident or facts.workers == times
    return no_accident and (seen.sure or _more_reads_than_copies_make(seen, facts.size))


def _one_batch(seen: Reads, facts: _Facts, evidence: dict[str, Quantity]) -> Verdict:
    steps, samples = len(seen.batches[0]), len(seen.batches[0][0])
    waste = 1 - 1 / steps
    return _answer(
        "found", "one-batch-again-and-again", evidence, where=facts.where, waste=waste, steps=steps, samples=samples
    )


def _evenly(seen: Reads, times: int, facts: _Facts, evidence: dict[str, Quantity]) -> Verdict:
    """Every sample as often as every other: of all ranks, or of some alone."""
    by_workers, known = facts.workers == times, {"where": facts.where, "times": times}
    if seen.even_repeats == times:
        key = "each-worker-yields-all" if by_workers else "every-sample-several-times"
        return _answer("found", key, evidence, **known, waste=1 - 1 / times)
    ranks = [at for at, own in enumerate(seen.even_repeats_of_rank) if own == times]
    share = sum(len(seen.of_rank[at]) for at in ranks) / seen.total
    key = "each-worker-of-one-rank-yields-all" if by_workers else "every-sample-several-times-on-one-rank"
    return _answer("found", key, evidence, **known, waste=(1 - 1 / times) * share, rank=ranks[0])


def _unevenly(seen: Reads, times: int | None, evidence: dict[str, Quantity]) -> Verdict:
    """Repeats that copies in the data, or draws with replacement, may have made."""
    if not seen.sure and seen.within_ranks <= EQUAL_SAMPLES * seen.total:
        return _answer("clear", "each-sample-once-but-equal-ones", evidence)
    if not times:
        return _answer("inconclusive", "repeats-uneven", evidence)
    return _answer("inconclusive", "repeats-too-few" if seen.sure else "repeats-or-copies", evidence)


def _more_reads_than_copies_make(seen: Reads, size: int | None) -> bool:
    """Whether there are more reads than equal samples in the data, or ranks that read the same, account for."""
    if size is None or not seen.complete:
        return False
    alone = seen.across_ranks < seen.world_size and not split_by_count(seen, size)
    return alone or any(len(keys) >= MORE_THAN_ALL * size for keys in seen.of_rank)
