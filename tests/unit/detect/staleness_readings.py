"""Runs of asynchronous training made of plain lists: in which order ranks' gradients came, and their losses."""

from collections.abc import Sequence

from labkit.record.schema import Event, RankLog, Record, Run, Span, Step

from ..builders import head, record_of

ROUND = (0, 1, 2, 3)


def served(order: Sequence[int], losses: Sequence[float] | None = None, *, role="variant", weights="a", events=(), **facts):
    """A run at a parameter server: each entry of `order` is the rank whose gradient makes the next update.

    Args:
        losses: of each gradient; none are recorded if None.
        weights: stands for the hash of rank 0's final weights.
        facts: that rank 0 declares.
    """
    world_size = max(order) + 1
    pulled = [0] * world_size
    steps: list[list[Step]] = [[] for _ in range(world_size)]
    for version, rank in enumerate(order):
        scalars: dict = {"version_pulled": pulled[rank], "version_pushed": version, "batch_samples": 8}
        if losses is not None:
            scalars["loss_local"] = losses[version]
        steps[rank].append(_step(len(steps[rank]), pulled[rank], version + 1, scalars))
        pulled[rank] = version + 1
    return _run(role, steps, weights, events, facts)


def in_step(losses: Sequence[float], world_size: int = 4, *, role="sync", weights="a", events=(), **facts) -> Run:
    """A synchronous run: every rank's gradient of a step meets the version that it was computed on."""
    steps: list[list[Step]] = [[] for _ in range(world_size)]
    for number, loss in enumerate(losses):
        for of_rank in steps:
            scalars = {"version_pulled": number, "version_pushed": number, "batch_samples": 8, "loss_local": loss}
            of_rank.append(_step(number, number, number + 1, scalars))
    return _run(role, steps, weights, events, facts)


def _step(number: int, start: int, end: int, scalars: dict) -> Step:
    return Step(number, 0, start * 1000, end * 1000, scalars={k: v if v == v else "nan" for k, v in scalars.items()})


def _run(role: str, steps: list[list[Step]], weights: str | None, events, facts) -> Run:
    logs = []
    for rank, of_rank in enumerate(steps):
        digests = {} if weights is None or rank else {"weights": weights}
        own = dict(facts) if rank == 0 else {}
        stamped = _aligned(head(rank, len(steps), **own))
        logs.append(RankLog(stamped, tuple(of_rank), tuple(events) if rank == 0 else (), digests=digests))
    return Run(role, tuple(logs), 1.0)


def _aligned(one):
    import msgspec

    return msgspec.structs.replace(one, barrier_ns=0)


def curvature(value: float) -> Event:
    return Event("sharpness", 0, 0, {"at_step": 0, "value": value})


def falling(count: int, first: float = 2.3, last: float = 0.1) -> list[float]:
    """Losses that fall evenly."""
    return [first + (last - first) * min(1.0, at / (0.8 * count)) for at in range(count)]


def beside_sync(run: Run, sync: Run | None = None, **others: Run) -> Record:
    return record_of(run, **({} if sync is None else {"sync": sync}), **others)


def paced(times: Sequence[Sequence[float]], waits: Sequence[Sequence[float]]) -> Record:
    """By rank, by step: how long it computed, and how long it was in communication, in seconds."""
    logs = []
    for rank, (own, waiting) in enumerate(zip(times, waits, strict=True)):
        steps, now = [], 0
        for number, (compute_s, wait_s) in enumerate(zip(own, waiting, strict=True)):
            middle, end = now + int(compute_s * 1e9), now + int((compute_s + wait_s) * 1e9)
            spans = [Span("backward", "compute", now, middle), Span("all_reduce", "comm", middle, end)]
            steps.append(Step(number, 0, now, end, spans=spans))
            now = end
        logs.append(RankLog(head(rank, len(times)), tuple(steps)))
    return record_of(Run("variant", tuple(logs), 1.0))
