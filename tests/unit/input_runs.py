"""Runs of an input pipeline made of numbers: how long each rank fetched and computed, step after step."""

from labkit.record.schema import RankLog, Record, Run, Span, Step, Storage

from .builders import head, record_of

MS = 1_000_000


def log_of(
    data_ms, compute_ms, *, rank=0, world_size=1, epochs=1, start_ms=0, samples=8, store_bytes=0, prepared=0, comm_ms=0,
    barrier_ns=None, **facts,
):  # fmt: skip
    """A rank that fetches `data_ms[k]` and computes `compute_ms` in step k of each epoch, one step after the other.

    Args:
        data_ms: milliseconds of each step's fetch, in one epoch; or a list of such, by epoch.
        compute_ms: milliseconds of compute, of every step.
        comm_ms: of these, the last so many in a collective.
    """
    by_epoch = data_ms if isinstance(data_ms[0], (list, tuple)) else [data_ms] * epochs
    steps, now = [], int(start_ms * MS)
    for epoch, waits_ms in enumerate(by_epoch):
        for wait in waits_ms:
            fetched, done = now + int(wait * MS), now + int((wait + compute_ms) * MS)
            spans = [Span("fetch", "data", now, fetched), Span("forward", "compute", fetched, done)]
            if comm_ms:
                spans.append(Span("all_reduce", "comm", done - int(comm_ms * MS), done))
            counts = {k: v for k, v in (("store_bytes", store_bytes), ("prepared", prepared)) if v}
            scalars = {"batch_samples": samples, "loss_local": 1.0}
            steps.append(Step(len(steps), epoch, now, done, spans, scalars, counts))
            now = done
    written = head(rank, world_size, **{"workers": 0, "meets": True, **facts})
    return RankLog(written if barrier_ns is None else _at(written, barrier_ns), tuple(steps))


def _at(written, barrier_ns):
    import msgspec

    return msgspec.structs.replace(written, barrier_ns=barrier_ns)


def run_of(*logs: RankLog, role: str = "variant") -> Run:
    return Run(role, tuple(logs), 1.0)


def steady(data_ms, compute_ms, *, ranks=1, steps=20, role="variant", **how) -> Run:
    """All ranks alike, every step alike."""
    return run_of(*(log_of([data_ms] * steps, compute_ms, rank=r, world_size=ranks, **how) for r in range(ranks)), role=role)


def queue(data_ms, compute_ms, ranks, *, steps=20, **how) -> Run:
    """Ranks that meet each step and fetch under one lock: rank r is the (r + 1)-th to come out."""
    round_ms = ranks * data_ms + compute_ms
    logs = []
    for r in range(ranks):
        fetch = (r + 1) * data_ms
        logs.append(log_of([fetch] * steps, round_ms - fetch, rank=r, world_size=ranks, **how))
    return run_of(*logs)


def record(run: Run, *, storage: Storage | None = None, **others: Run) -> Record:
    import msgspec

    found = record_of(run, **others)
    provenance = msgspec.structs.replace(found.provenance, storage=storage)
    return msgspec.structs.replace(found, lab="input-pipeline", provenance=provenance)
