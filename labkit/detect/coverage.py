"""Is all of the data read in an epoch?

A sampler's or a loader's dropped tail is less than one global batch; whatever else is missing is never trained on in
this epoch. A loader that is sharded twice misses all but 1/W.
"""

from __future__ import annotations

from ..record.measures import Quantity, Reads, dataset_size, epochs, first_epoch, reads
from ..record.schema import Record, Run
from ..words import plural
from .explanations import unless_contents_change, with_replacement
from .verdict import Verdict, answering

NAME = "coverage"
QUESTION = "Is all of the data read in an epoch?"
_answer = answering(NAME, QUESTION)

EPOCHS = 10
"""Epochs that are looked at for what the first leaves out."""


def detect(record: Record) -> Verdict:
    """Judge the first epoch of the run under study."""
    return unless_contents_change(_judge(record.run), record.run)


def _judge(run: Run) -> Verdict:
    seen, size = first_epoch(run), dataset_size(run)
    if seen is None and any(
        event.name == "epoch_end" and "of" not in event.fields for log in run.ranks for event in log.events
    ):
        return _answer(
            "found",
            cause="epochs end without a batch: nothing is read, and nothing trained",
            fix="look whether a rank has fewer samples than a batch and drop_last=True drops them: take a smaller batch, or "
            "keep the last one",
        )
    if seen is None or seen.total == 0 or size is None:
        lacks = "the data set's size" if seen is not None and seen.total else "which samples were read"
        return _answer(
            "not_applicable",
            cause=f"the program did not record {lacks}",
            fix="declare it with probe.declare(dataset_size=...) and record each batch with probe.samples(name, batch)",
        )
    missing = max(0, size - seen.unique)
    evidence = {
        "coverage": Quantity(seen.unique / size, "of the data set"),
        "missing_samples": Quantity(missing, "samples"),
        "samples_per_epoch": Quantity(seen.total, "samples"),
        "dataset_size": Quantity(size, "samples"),
        "told_apart_by": Quantity(seen.key),
    }
    where = str(run.fact("loader_where", "")) or None
    if missing == 0:
        return _answer("clear", evidence, cause="every sample is read")
    if not seen.complete:
        return _answer(
            "inconclusive",
            evidence,
            cause="the run ended before the epoch did, so what it did not read may still have come",
            fix="run a whole epoch (no cap on the steps)",
        )
    droppable = _droppable(seen, run.fact("batch_size"))
    later = next((epoch for epoch in epochs(run)[1:EPOCHS] if reads(run, epoch, seen.key).unique >= size), None)
    if later is not None:
        return _answer(
            "clear",
            evidence,
            cause=f"epoch {seen.epoch} leaves out {missing:,}, as a curriculum or a resumed epoch does, and epoch {later} "
            "reads every sample",
        )
    if seen.total < size and missing <= droppable:
        return _answer("clear", evidence, cause=f"all is read but a dropped tail of {missing}, less than a global batch")
    enough_reads = seen.total >= size - droppable
    if enough_reads and seen.key == "digest":
        return _answer(
            "inconclusive",
            evidence,
            cause="as many samples were read as the data set holds, but some are equal: copies in the data, or reads "
            "repeated in place of others; hashes of the content cannot tell",
            fix="record the samples' ids too, with ids_at= or probe.samples(name, batch, ids), and the ids decide",
        )
    if enough_reads and with_replacement([seen], size):
        return _answer(
            "inconclusive",
            evidence,
            cause=f"not read: {plural(missing, 'sample')}, while others are repeated, as drawing with replacement does",
            fix="draw without replacement for one epoch, and judge that",
        )
    if not enough_reads:
        cause = f"an epoch reads {seen.total:,} samples of {size:,}"
        if seen.world_size > 1 and abs(seen.total * seen.world_size / size - 1) < 0.1:
            cause += f", about 1/{seen.world_size}: each rank takes its share of a share"
        fix = "shard once: give the whole data set to one DistributedSampler, and let no other wrapper split its output"
    else:
        cause = f"{missing:,} of {plural(size, 'sample')} are never read, while others are read more than once"
        fix = "build the ranks' shares from one permutation, and one split, that are the same on every rank"
    return _answer("found", evidence, cause=cause, fix=fix, where=where)


def _droppable(seen: Reads, batch: object) -> int:
    """How many samples a dropped tail may hold.

    With a last batch that is shorter than the others nothing was dropped but by the sampler (fewer than W); else less
    than a global batch. Where batches differ anyway, as those of a number of tokens do, a short one says nothing.
    """
    by_sampler = seen.world_size - 1
    sizes = [len(keys) for of_rank in seen.batches for keys in of_rank]
    full = int(batch) if isinstance(batch, int) and batch > 0 else max(sizes)
    differ = len({len(keys) for of_rank in seen.batches for keys in of_rank[:-1]}) > 2
    if not differ and any(len(of_rank[-1]) < full for of_rank in seen.batches if of_rank):
        return by_sampler
    return (max(sizes) if differ else full) * seen.world_size - 1
