"""A record as a machine that holds still for nobody would have left it: every step longer or shorter by chance."""

import msgspec
import numpy as np

from labkit.record.schema import Event, RankLog, Record, Span, Step

TIMES = ("seconds", "cpu_s", "queued_s")


def shaken(record: Record, rng: np.random.Generator, sigma: float = 1.0) -> Record:
    """The same steps in the same order, each of a length of its own; what is timed beside them varies as well."""
    runs = {
        role: msgspec.structs.replace(run, ranks=tuple(_rank(log, rng, sigma) for log in run.ranks))
        for role, run in record.runs.items()
    }
    return msgspec.structs.replace(record, runs=runs)


def _rank(log: RankLog, rng: np.random.Generator, sigma: float) -> RankLog:
    steps, shift, before = [], 0, None
    for step in log.steps:
        if before is not None:
            shift += before
        factor = float(rng.lognormal(0, sigma))
        steps.append(_step(step, step.start_ns + shift, factor, rng, sigma))
        before = round((step.end_ns - step.start_ns) * (factor - 1))
    events = tuple(_event(event, float(rng.lognormal(0, sigma))) for event in log.events)
    return msgspec.structs.replace(log, steps=tuple(steps), events=events)


def _step(step: Step, start: int, factor: float, rng: np.random.Generator, sigma: float) -> Step:
    def at(time_ns: int) -> int:
        return start + round((time_ns - step.start_ns) * factor)

    scalars = {k: v * float(rng.lognormal(0, sigma)) if k in TIMES else v for k, v in step.scalars.items()}
    series = {k: [at(v) for v in values] if k.endswith("_ns") else values for k, values in step.series.items()}
    spans = [Span(s.name, s.lane, at(s.start_ns), at(s.end_ns)) for s in step.spans]
    return msgspec.structs.replace(step, start_ns=start, end_ns=at(step.end_ns), spans=spans, scalars=scalars, series=series)


def _event(event: Event, factor: float) -> Event:
    fields = event.fields
    if "elapsed_ns" not in fields:
        return event
    return msgspec.structs.replace(
        event, fields=fields | {"elapsed_ns": max(1, round(float(fields["elapsed_ns"]) * factor))}
    )
