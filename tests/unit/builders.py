"""Runs and records made of plain lists: what each rank read, by epoch, by rank, by step."""

import random

import msgspec

from labkit.record.load import Load
from labkit.record.schema import Event, Head, Provenance, RankLog, Record, Run, Seen, Span, Step

Reading = list[list[list[list[int]]]]
"""Ids by epoch, by rank, by step."""


def content_of(sample: int) -> int:
    """A 64-bit number that stands for a sample's content, different for each."""
    return (sample + 1) * 0x9E3779B97F4A7C15 % 2**64


def head(rank: int = 0, world_size: int = 1, **facts) -> Head:
    return Head(1, rank, rank, world_size, "host", 1, 0, "cpu", "gloo", 1, 1000 * rank, facts)


def step(number: int, epoch: int = 0, **fields) -> Step:
    return Step(number, epoch, number * 100, number * 100 + 100, **fields)


def span(start: int, end: int, lane: str = "compute") -> Span:
    return Span("span", lane, start, end)


def run_of(reading: Reading, *, ids: bool = True, complete: bool = True, content=content_of, validation=(), **facts) -> Run:
    """A run in which rank r read `reading[epoch][r][step]`.

    Args:
        ids: whether the program recorded ids; content is always recorded.
        complete: whether the epochs came to their ends.
        content: from a sample's id to what stands for its content.
        validation: by rank, the ids of a validation pass.
    """
    world_size = len(reading[0])
    logs = []
    for rank in range(world_size):
        steps, events = [], []
        for epoch, of_rank in enumerate(ranks[rank] for ranks in reading):
            for batch in of_rank:
                recorded = {"digests": {"train": [content(i) for i in batch]}}
                steps.append(step(len(steps), epoch, **recorded, **({"ids": {"train": batch}} if ids else {})))
            if complete:
                events.append(Event("epoch_end", len(steps) - 1, 0, {"epoch": epoch}))
        seen = [Seen("validation", 0, [content(i) for i in passed], list(passed) if ids else [])
                for passed in validation[rank : rank + 1]]  # fmt: skip
        logs.append(RankLog(head(rank, world_size, **facts), tuple(steps), tuple(events), tuple(seen)))
    return Run("variant", tuple(logs), 1.0)


def record_of(run: Run, **others: Run) -> Record:
    provenance = Provenance(
        source="measured", device="a processor", backend="gloo", world_size=run.world_size, torch="2.9", seed=0,
        date="2025-01-02T03:04:05+00:00",
    )  # fmt: skip
    return Record("duplicate-data", "broken", {}, provenance, {"variant": run, **others})


def crowded(record: Record, during: float, *, cores: int = 2) -> Record:
    """The same record, of a machine on which other programs used so many of its cores in every run."""
    runs = {
        role: msgspec.structs.replace(
            run, load=Load(cores=cores, wanted=run.world_size, before=during, during=during, own=0.2, seconds=5.0)
        )
        for role, run in record.runs.items()
    }
    provenance = msgspec.structs.replace(record.provenance, load=next(iter(runs.values())).load)
    return msgspec.structs.replace(record, runs=runs, provenance=provenance)


def in_batches(ids: list[int], batch: int, drop_last: bool = False) -> list[list[int]]:
    found = [ids[i : i + batch] for i in range(0, len(ids), batch)]
    return [b for b in found if len(b) == batch] if drop_last else found


def shuffled(size: int, seed: int) -> list[int]:
    return random.Random(seed).sample(range(size), size)


def shares(order: list[int], world_size: int, drop_last: bool = False) -> list[list[int]]:
    """What a distributed sampler gives each rank of an order: every W-th, padded from the start or with the tail dropped."""
    if drop_last:
        order = order[: len(order) // world_size * world_size]
    else:
        order = (order * world_size)[: -(-len(order) // world_size) * world_size]
    return [order[rank::world_size] for rank in range(world_size)]
