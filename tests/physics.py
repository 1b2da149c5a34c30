"""What no record of anything real can say. Used on every record that a test of a lab makes.

Times are compared as figures draw them: as the record was read, all ranks on one axis.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from labkit.detect.crash.measures import crashes
from labkit.detect.staleness.measures import pushes
from labkit.record.schema import RankLog, Record, Run, Step

ALL_WAIT_FOR_ALL = {"all_reduce", "all_gather", "reduce_scatter", "barrier"}
"""Collectives that cannot end on one rank before they began on another: each needs what each brings."""


def impossible(record: Record) -> list[str]:
    """Sentences that say what in a record contradicts physics; empty where all of it can have happened."""
    return [f"{role}: {what}" for role, run in record.runs.items() for what in _of_run(run)]


def _of_run(run: Run) -> Iterator[str]:
    for logs in (*run.earlier, run.ranks):
        for log in logs:
            yield from _backwards(log)
        yield from _collectives(logs)
    yield from _gradients(run)
    for crash in crashes(run):
        if crash.restart_s <= 0:
            yield f"a restart took {crash.restart_s} s"


def _backwards(log: RankLog) -> Iterator[str]:
    """Time runs forward on each rank, and what is of a step lies in it."""
    rank, before = log.head.rank, None
    for step in log.steps:
        if step.end_ns < step.start_ns:
            yield f"rank {rank}, step {step.step} ends before it begins"
        if before is not None and step.start_ns < before:
            yield f"rank {rank}, step {step.step} begins before the one before it ended"
        before = step.end_ns
        for span in step.spans:
            if not step.start_ns <= span.start_ns <= span.end_ns:
                yield f"rank {rank}, step {step.step}: {span.name} ends before it, or its step, begins"
            if span.end_ns > step.end_ns:
                yield f"rank {rank}, step {step.step}: {span.name} ends after its step"


def _collectives(logs: tuple[RankLog, ...]) -> Iterator[str]:
    """The k-th collective of a kind in a step is one and the same on all ranks."""
    by_step: dict[int, list[Step]] = defaultdict(list)
    for log in logs:
        for step in log.steps:
            by_step[step.step].append(step)
    for number, steps in by_step.items():
        for name in ALL_WAIT_FOR_ALL:
            of_ranks = [sorted((s.start_ns, s.end_ns) for s in step.spans if s.name == name) for step in steps]
            if len({len(spans) for spans in of_ranks}) == 1:
                yield from (f"step {number}: {name} {k} {what}" for k, what in _apart(of_ranks))
        yield from (f"step {number}: bucket {k} {what}" for k, what in _apart([_buckets(step) for step in steps]))


def _buckets(step: Step) -> list[tuple[int, int]]:
    """(ready, reduced) of each bucket, as a watched DDP module wrote it."""
    found = zip(step.series.get("bucket_ready_ns", []), step.series.get("bucket_end_ns", []), strict=True)
    return list(found)


def _apart(of_ranks: list[list[tuple[int, int]]]) -> Iterator[tuple[int, str]]:
    for k, spans in enumerate(zip(*of_ranks, strict=False)):
        latest, earliest = max(start for start, _ in spans), min(end for _, end in spans)
        if latest > earliest:
            yield k, f"ended on one rank {(latest - earliest) / 1e6:.3f} ms before it began on another"


def _gradients(run: Run) -> Iterator[str]:
    """A gradient is applied after it was computed, and computed on what had been applied before."""
    of_run = pushes(run)
    if of_run is None:
        return
    if (of_run.staleness < 0).any():
        yield "a gradient was computed on a version that did not exist yet"
    # a gradient is applied between its step's beginning and end; so is the one that makes the version it is computed on
    made_after = {int(version) + 1: begun for version, begun in zip(of_run.pushed, of_run.begun_s, strict=True)}
    for rank, pulled, begun, applied in zip(of_run.rank, of_run.pulled, of_run.begun_s, of_run.applied_s, strict=True):
        if applied < begun:
            yield f"rank {rank}: a gradient was applied before it was begun"
        if of_run.one_by_one and int(pulled) in made_after and made_after[int(pulled)] > begun:
            yield f"rank {rank}: computed on version {int(pulled)} before the gradient that made it was begun"
    if of_run.one_by_one:
        latest = 0.0
        for version, begun, applied in zip(of_run.pushed, of_run.begun_s, of_run.applied_s, strict=True):
            latest = max(latest, begun)
            if applied < latest:
                yield f"version {int(version)} was applied after a gradient that was begun only later"
