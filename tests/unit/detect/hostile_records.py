"""Records of nine kinds, and what can be wrong with any of them: nonsense for a fact, spans that are gone, ragged ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from msgspec.structs import replace

from labkit.record.schema import RankLog, Record, Run, Span, Step

from .. import input_runs, zero_runs
from ..builders import head, record_of, run_of
from ..crash_records import crash_record, saved_and_resumed, uninterrupted
from ..surveys import survey
from . import overlap_readings, precision_readings, readings, staleness_readings

NONSENSE = (0, -1, 0.5, 1e308, -1e308, float("nan"), float("inf"), "", "many", True, False, 2**62)
WORDS = (0.0, -1.0, 1e308, -1e308, "nan", "inf", "-inf")
"""What a scalar can be in a record: a number, or one of three words."""

Change = Callable[[int, RankLog], RankLog]


def _mfu() -> Record:
    facts = {"matmul_params": 1000, "layers": 1, "hidden": 10, "seq": 100, "counted_flops_per_token": 18000.0,
             "executed_flops_per_token": 18000.0, "warm_up": 1, "precision": "fp32"}  # fmt: skip
    steps = [
        Step(n, 0, n * 10**9, (n + 1) * 10**9, [Span("fetch", "data", n * 10**9, n * 10**9 + 10**8)],
             {"tokens": 100, "cpu_s": 0.9, "queued_s": 0.0, "loss_local": 1.0}, {"updates": 1})
        for n in range(5)
    ]  # fmt: skip
    run = Run("variant", (RankLog(head(0, 1, **facts), tuple(steps)),), 1.0)
    ceiling = Run("ceiling", (RankLog(head(0, 1, flops_per_step=1e7, warm_up=1), tuple(steps)),), 1.0)
    return record_of(run, ceiling=ceiling, tuned=replace(run, role="tuned"))


def _precision() -> Record:
    steps = [precision_readings.update(loss=1 / (n + 1), norm=0.5, scale=1024.0, batch=n) for n in range(12)]
    return precision_readings.beside_fp32(
        precision_readings.made_of(steps, events=precision_readings.timed([5, 6, 5], [4, 4, 5]), clip_norm=1.0),
        precision_readings.made_of(steps, role="fp32"),
    )


@cache
def kinds() -> dict[str, Record]:
    """By name: a record that detectors of one topic have much to say about."""
    reading = readings.fixed(24, 2, 4)
    losses = staleness_readings.falling(24)
    return {
        "reads": record_of(run_of(reading, dataset_size=24, batch_size=4, workers=0, validation=[[1, 2], [3]])),
        "mfu": _mfu(),
        "precision": _precision(),
        "staleness": staleness_readings.beside_sync(
            staleness_readings.served([0, 1, 2, 3] * 6, losses, lr=0.1, momentum=0.9),
            again=staleness_readings.served([0, 1] * 12),
        ),
        "pace": staleness_readings.paced([[10.0] * 12, [30.0] * 12], [[21.0] * 12, [1.0] * 12]),
        "overlap": overlap_readings.record(overlap_readings.same_on(2, steps=6, buckets=((50, 90), (200, 260)))),
        "sharding": zero_runs.record(zero_runs.run_with(), cheaper=zero_runs.cheaper_run()),
        "input": input_runs.record(
            input_runs.steady(5, 20, ranks=2, comm_ms=3, store_bytes=100),
            dummy=input_runs.steady(0, 20, ranks=2, role="dummy"),
        ),
        "crash": crash_record(saved_and_resumed(states={"model": "m"}), uninterrupted()),
        "survey": survey(),
    }  # fmt: skip


def everywhere(record: Record, change: Change) -> Record:
    """The record with each rank of each run changed."""
    runs = {
        role: replace(run, ranks=tuple(change(rank, log) for rank, log in enumerate(run.ranks)))
        for role, run in record.runs.items()
    }
    return replace(record, runs=runs)


def _steps(change: Callable[[Step], Step]) -> Change:
    return lambda _, log: replace(log, steps=tuple(change(step) for step in log.steps))


def _spans(change: Callable[[Span], Span]) -> Change:
    return _steps(lambda step: replace(step, spans=[change(span) for span in step.spans]))


SHAPES: dict[str, Change] = {
    "no steps": lambda _, log: replace(log, steps=()),
    "one step": lambda _, log: replace(log, steps=log.steps[:1]),
    "two steps": lambda _, log: replace(log, steps=log.steps[:2]),
    "ranks of different lengths": lambda rank, log: replace(log, steps=log.steps[: 1 + 2 * rank]),
    "only rank 0 made steps": lambda rank, log: replace(log, steps=()) if rank else log,
    "rank 0 made no step": lambda rank, log: log if rank else replace(log, steps=()),
    "no spans": _steps(lambda step: replace(step, spans=[])),
    "spans of no length": _spans(lambda span: replace(span, end_ns=span.start_ns)),
    "spans that end before they begin": _spans(lambda span: replace(span, start_ns=span.end_ns, end_ns=span.start_ns)),
    "steps of no length": _steps(lambda step: replace(step, start_ns=5, end_ns=5)),
    "steps that end before they begin": _steps(lambda step: replace(step, start_ns=step.end_ns, end_ns=step.start_ns)),
    "all steps have one number": _steps(lambda step: replace(step, step=0, epoch=0)),
    "epochs below 0": _steps(lambda step: replace(step, epoch=-3)),
    "huge numbers": _steps(lambda step: replace(step, step=step.step + 2**60, epoch=2**60)),
    "no scalars, counts and series": _steps(lambda step: replace(step, scalars={}, counts={}, series={})),
    "empty batches": _steps(
        lambda step: replace(step, digests={name: [] for name in step.digests}, ids={name: [] for name in step.ids})
    ),
    "series of other lengths": _steps(lambda step: replace(step, series={n: v[:1] for n, v in step.series.items()})),
    "no events and digests": lambda _, log: replace(log, events=(), digests={}, seen=()),
    "no facts": lambda _, log: replace(log, head=replace(log.head, facts={})),
    "no threads": lambda _, log: replace(log, head=replace(log.head, threads=0)),
}
"""By name: what can be missing or upside down in a record."""


def with_facts(record: Record) -> Iterator[tuple[str, object, Record]]:
    """(name, value, record): each fact of the record as each nonsense."""
    for name in sorted({name for run in record.runs.values() for name in run.ranks[0].head.facts}):
        for value in NONSENSE:
            yield name, value, everywhere(record, _declaring(name, value))


def _declaring(name: str, value: object) -> Change:
    def change(_: int, log: RankLog) -> RankLog:
        facts = log.head.facts | ({name: value} if name in log.head.facts else {})
        return replace(log, head=replace(log.head, facts=facts))  # pyright: ignore[reportArgumentType]

    return change


def with_scalars(record: Record) -> Iterator[tuple[str, object, Record]]:
    """(name, value, record): each scalar as each word or number, in every step."""
    for name in sorted({n for log in record.run.ranks for step in log.steps for n in step.scalars}):
        for value in WORDS:
            yield name, value, everywhere(record, _steps(_telling(name, value)))


def _telling(name: str, value: float | str) -> Callable[[Step], Step]:
    return lambda step: replace(step, scalars=step.scalars | ({name: value} if name in step.scalars else {}))


def with_counts(record: Record) -> Iterator[tuple[str, object, Record]]:
    """(name, value, record): each count as nothing, less than nothing and more than can be."""
    for name in sorted({n for log in record.run.ranks for step in log.steps for n in step.counts}):
        for value in (0, -1, 2**62):
            yield name, value, everywhere(record, _steps(_counting(name, value)))


def _counting(name: str, value: int) -> Callable[[Step], Step]:
    return lambda step: replace(step, counts=step.counts | ({name: value} if name in step.counts else {}))
