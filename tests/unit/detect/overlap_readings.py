"""Records about overlap made of plain numbers: what each rank computes and sends, in milliseconds."""

import msgspec

from labkit.record.schema import Event, RankLog, Record, Run, Span, Step

from ..builders import head, record_of

MS = 1_000_000


def spans(*parts) -> list[Span]:
    """(name, lane, from ms, to ms) each, from the beginning of the step."""
    return [Span(name, lane, round(start * MS), round(end * MS)) for name, lane, start, end in parts]


def at(step: Step, start_ms: float) -> Step:
    """The same step, begun later."""
    shift = round(start_ms * MS)
    moved = [Span(s.name, s.lane, s.start_ns + shift, s.end_ns + shift) for s in step.spans]
    series = {k: [v + shift for v in values] if k.endswith("_ns") else values for k, values in step.series.items()}
    return Step(step.step, 0, step.start_ns + shift, step.end_ns + shift, spans=moved, scalars=step.scalars,
                counts=step.counts, series=series)  # fmt: skip


def ddp_step(number, *, forward=100, backward=200, buckets=((200, 260),), sizes=None, params=None, late=0.0, sync=(1, 1),
             passes=1, length=None, alone=0, unused=None):  # fmt: skip
    """One step of one rank: `passes` times forward and backward, with buckets (ready, arrived) ms after backward begins."""
    found, series, counts = [], {}, {"backwards": passes, "updates": 1, "reductions": 0, "all_reduce": 0}
    now = 0.0
    for number_of_pass in range(passes):
        begin, computed = now + forward, now + forward + backward + late
        found.append(("forward", "compute", now, begin))
        found.append(("backward", "compute", begin, computed))
        ready = [begin + one + late for one, _ in buckets]
        ends = [begin + other + late for _, other in buckets]
        for start, end in zip(ready, ends, strict=True):
            found.append(("all_reduce", "comm", start, end))
        now = max([computed, *ends])
        rows = {
            "bucket_bytes": list(sizes or [1000] * len(buckets)),
            "bucket_params": list(params or [1] * len(buckets)),
            "bucket_ready_ns": [round(v * MS) for v in ready],
            "bucket_end_ns": [round(v * MS) for v in ends],
            "bucket_pass": [number_of_pass] * len(buckets),
            "sync_at_forward": [sync[0]],
            "sync_at_backward": [sync[1]],
            "backward_start_ns": [round(begin * MS)],
            "backward_computed_ns": [round(computed * MS)],
            **({} if unused is None else {"unused_params": [unused]}),
        }
        for name, values in rows.items():
            series.setdefault(name, []).extend(values)
        counts["reductions"] += bool(buckets)
        counts["all_reduce"] += len(buckets)
    if alone:
        counts["alone"] = 1
    end = round((now if length is None else length) * MS)
    return Step(number, 0, 0, end, spans=spans(*found), counts=counts, series=series)


def run_of(steps_of_ranks, *, digests=None, events=(), **facts) -> Run:
    """A run; steps follow each other. Facts are what every rank's program and module say of themselves."""
    world_size = len(steps_of_ranks)
    said = {"warm_up": 0, "ddp_params": 4, "ddp_gradient_bytes": 4000, "ddp_find_unused": False} | facts
    logs = []
    for rank, steps in enumerate(steps_of_ranks):
        placed, start = [], 0.0
        for step in steps:
            placed.append(at(step, start))
            start += 1000
        weights = {} if digests is None else {"weights": digests[rank]}
        own = msgspec.structs.replace(head(rank, world_size, **said), clock="one")
        logs.append(RankLog(own, tuple(placed), tuple(events), digests=weights))
    return Run("variant", tuple(logs), 1.0)


def record(steps_of_ranks, **how) -> Record:
    return record_of(run_of(steps_of_ranks, **how))


def same_on(ranks: int, steps: int = 5, **how) -> list[list[Step]]:
    """Equal steps on all ranks."""
    return [[ddp_step(number, **how) for number in range(steps)] for _ in range(ranks)]


def unused_event(names: str) -> Event:
    return Event("unused_parameters", 0, 0, {"count": 1, "names": names})
