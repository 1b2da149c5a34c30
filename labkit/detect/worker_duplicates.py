"""Does one rank read the same sample again and again within an epoch?

An IterableDataset that does not ask which DataLoader worker it runs in is read whole by each: every sample comes as
often as there are workers. Sampling with replacement repeats too, but unevenly; data with equal samples, too.
"""

from __future__ import annotations

import numpy as np

from ..record.measures import Quantity, Reads, dataset_size, first_epoch
from ..record.schema import Record
from .verdict import Verdict, answering

NAME = "worker-duplicates"
QUESTION = "Does one rank read a sample several times in an epoch?"
_answer = answering(NAME, QUESTION)

EQUAL_SAMPLES = 0.01
EVEN = 0.99


def detect(record: Record) -> Verdict:
    """Judge the first epoch of the run under study, each rank for itself."""
    run = record.run
    seen = first_epoch(run)
    if seen is None or seen.total == 0:
        return _answer(
            "not_applicable",
            cause="the program recorded no samples",
            fix="record each batch with probe.samples(name, batch) or read it through probe.batches(loader)",
        )
    size, workers = dataset_size(run), run.fact("workers", 0)
    where = str(run.fact("loader_where", "")) or None
    times = _even_repeats(seen)
    evidence = {
        "repeated_reads": Quantity(seen.within_ranks, "reads"),
        "reads_of_a_sample_by_one_rank": Quantity(times or 1, "reads"),
        "told_apart_by": Quantity(seen.key),
    }
    if workers:
        evidence["workers"] = Quantity(int(workers), "a rank")  # pyright: ignore[reportArgumentType]
    # a sampler that has more ranks than samples repeats some: at most as many as make the ranks' shares equal
    allowed = seen.world_size * max(1, -(-seen.world_size // size) if size else 1)
    if seen.within_ranks <= allowed and not (times and seen.within_ranks):
        if not seen.complete:
            return _answer(
                "inconclusive",
                evidence,
                cause="no rank repeated a sample, but the run ended before the epoch, and workers may repeat later",
                fix="run a whole epoch",
            )
        return _answer("clear", evidence, cause="each rank reads a sample at most once an epoch")
    more_than_all = size is not None and any(len(keys) > size for keys in seen.of_rank)
    if times and times >= 2 and (seen.key == "id" or more_than_all):
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
        fix="return the sample's id as the third item of a batch, and run a whole epoch without replacement",
    )


def _even_repeats(seen: Reads) -> int | None:
    """How often a rank reads each of its samples, if (almost) all of them equally often; None otherwise."""
    counts = np.concatenate([np.unique(keys, return_counts=True)[1] for keys in seen.of_rank if len(keys)])
    usual = int(np.median(counts))
    return usual if (counts == usual).mean() >= EVEN and (usual > 1 or seen.within_ranks == 0) else None
