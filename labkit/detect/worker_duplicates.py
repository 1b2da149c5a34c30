"""Does one rank read the same sample again and again within an epoch?

An IterableDataset that does not ask which DataLoader worker it runs in is read whole by each: every sample comes as
often as there are workers. A loop that asks the loader for its first batch at every step reads that batch alone.
Sampling with replacement repeats too, but unevenly; data with equal samples, too.
"""

from __future__ import annotations

from ..record.measures import Quantity, Reads, dataset_size, filling, first_epoch
from ..record.schema import Record, Run
from .explanations import ENOUGH, EQUAL_SAMPLES, split_by_count, unless_contents_change
from .verdict import Verdict, answering

NAME = "worker-duplicates"
QUESTION = "Does one rank read a sample several times in an epoch?"
_answer = answering(NAME, QUESTION)

MORE_THAN_ALL = 1.5
"""A rank that reads this many times the data set in an epoch repeats samples, whatever the data hold."""


def detect(record: Record) -> Verdict:
    """Judge the first epoch of the run under study, each rank for itself."""
    return unless_contents_change(_judge(record.run), record.run)


def _judge(run: Run) -> Verdict:
    seen = first_epoch(run)
    if seen is None or seen.total == 0:
        return _answer(
            "not_applicable",
            cause="the program recorded no samples",
            fix="record each batch with probe.samples(name, batch) or read it through probe.batches(loader)",
        )
    size, workers = dataset_size(run), run.fact("workers", 0)
    where = str(run.fact("loader_where", "")) or None
    times = seen.even_repeats
    evidence = {
        "repeated_reads": Quantity(seen.within_ranks, "reads"),
        "reads_of_a_sample_by_one_rank": Quantity(times or 1, "reads"),
        "told_apart_by": Quantity(seen.key),
    }
    if workers:
        evidence["workers"] = Quantity(int(workers), "a rank")  # pyright: ignore[reportArgumentType]
    if seen.one_batch and times != workers:
        steps = len(seen.batches[0])
        return _answer(
            "found",
            evidence,
            cause=f"every one of {steps} steps reads the same {len(seen.batches[0][0])} samples",
            fix="make the iterator once an epoch (for batch in loader); next(iter(loader)) in the loop starts over each "
            "time. Where one batch was chosen to see whether a model can learn it, this is expected",
            where=where,
            waste=1 - 1 / steps,
        )
    # one a rank, where a loader evens the steps out, or what fills the last batches up
    allowed = max(seen.world_size, filling(seen, size))
    if seen.within_ranks <= allowed and (times or 1) == 1:
        if not seen.complete:
            return _answer(
                "inconclusive",
                evidence,
                cause="no rank repeated a sample, but the run ended before the epoch, and workers may repeat later",
                fix="run a whole epoch",
            )
        return _answer("clear", evidence, cause="each rank reads a sample at most once an epoch")
    no_accident = seen.unique >= ENOUGH or workers == times
    certain = seen.key == "id" or _more_reads_than_copies_make(seen, size)
    # each worker makes batches of its own
    if times is not None and 2 <= times <= len(seen.global_batches) and no_accident and certain:
        return _answer(
            "found",
            evidence,
            cause=f"a rank reads every sample {times} times in one epoch"
            + (f": each of its {workers} workers yields all of its data" if workers == times else ""),
            fix="in the IterableDataset's __iter__, take every (W·workers)-th item: index by rank and by "
            "torch.utils.data.get_worker_info()",
            where=where,
            waste=1 - 1 / times,
        )
    if seen.key == "digest" and seen.within_ranks <= EQUAL_SAMPLES * seen.total:
        return _answer("clear", evidence, cause="each rank reads a sample at most once an epoch; a few samples are equal")
    return _answer(
        "inconclusive",
        evidence,
        cause="ranks read samples repeatedly, but not all equally often: sampling with replacement does that"
        if not times
        else "ranks meet every sample equally often, but by hashes of the content: the data set itself may hold copies",
        fix="record the samples' ids too, with ids_at= or probe.samples(name, batch, ids), and run a whole epoch without "
        "replacement",
    )


def _more_reads_than_copies_make(seen: Reads, size: int | None) -> bool:
    """Whether there are more reads than equal samples in the data, or ranks that read the same, account for."""
    if size is None or not seen.complete:
        return False
    alone = seen.across_ranks < seen.world_size and not split_by_count(seen, size)
    return alone or any(len(keys) >= MORE_THAN_ALL * size for keys in seen.of_rank)
