"""Arrays and numbers out of records about sharded state: what is kept, what is sent, what is left over. Pure; no torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ...record.roles import Role
from ...record.schema import Event, RankLog, Record, Run
from ...theory.strategies import STRATEGIES
from ...theory.zero import State, hsdp_state, hsdp_traffic, recipe, state, traffic

CATEGORIES = ("parameters", "gradients", "optimizer_state", "unsharded", "buffers")
INSTANTS = ("init", "forward", "backward_start", "backward_end", "step")
INSTANT_SAID = {
    "init": "before\nforward",
    "forward": "after\nforward",
    "backward_start": "backward\nbegins",
    "backward_end": "backward\nended",
    "step": "after\nstep",
}


def _int(run: Run, name: str, default: int = 0) -> int:
    return int(run.fact(name, default))  # pyright: ignore[reportArgumentType]


def _events(log: RankLog, name: str) -> list[Event]:
    return [event for event in log.events if event.name == name]


def strategy_of(run: Run) -> str:
    """The strategy that a run declared; "" where it declared none."""
    return str(run.fact("strategy", ""))


def strategy_runs(record: Record) -> dict[str, Run]:
    """The runs of a record in which several ranks trained in a known strategy, by strategy; the one under study first."""
    found: dict[str, Run] = {}
    for run in (record.run, *record.runs.values()):
        if strategy_of(run) in STRATEGIES and kept(run):
            found.setdefault(strategy_of(run), run)
    return found


def kept(run: Run) -> dict[str, np.ndarray]:
    """By instant: bytes that each rank keeps [ranks, categories]; empty where nothing was looked at."""
    found: dict[str, list[list[int]]] = {}
    for log in run.ranks:
        for event in _events(log, "memory"):
            if "instant" not in event.fields:
                continue  # one of a whole loop, as lab 01 notes it
            row = [int(event.fields.get(category, 0)) for category in CATEGORIES]
            found.setdefault(str(event.fields["instant"]), []).append(row)
    return {instant: np.array(rows) for instant, rows in found.items() if len(rows) == run.world_size}


def peak_bytes(run: Run) -> np.ndarray | None:
    """By rank: the most that was alive at an instant or as a collective began; None where it was not looked at."""
    peaks = [int(event.fields["peak"]) for log in run.ranks for event in _events(log, "peak")]
    return np.array(peaks) if len(peaks) == run.world_size else None


def kept_at_peak(run: Run) -> np.ndarray | None:
    """Bytes that each rank kept when it kept the most [ranks, categories]; None where that was not looked at.

    An older record says how much, and not of what: its peak is of no category, and None.
    """
    found = [event.fields for log in run.ranks for event in _events(log, "peak") if CATEGORIES[0] in event.fields]
    if len(found) != run.world_size:
        return None
    return np.array([[int(fields.get(category, 0)) for category in CATEGORIES] for fields in found])


def own_account(run: Run) -> list[dict[str, int]]:
    """By rank: what the implementation's own partition says that it keeps after a backward pass."""
    return [
        {name: int(value) for name, value in event.fields.items()}
        for log in run.ranks
        for event in _events(log, "own_account")
    ]


@dataclass(frozen=True)
class Operation:
    """All collectives of one kind on one group, in the counted step, as the first rank dispatched them.

    Attributes:
        kind, count: what and how many.
        elements, num_bytes: of the whole tensors.
        sent_bytes: of a rank by the ring algorithm.
        group_size: ranks in the group.
        hosts: on which they sit.
    """

    kind: str
    count: int
    elements: int
    num_bytes: int
    sent_bytes: float
    group_size: int
    hosts: int


def operations(run: Run, rank: int = 0) -> list[Operation]:
    """What a rank gave to collectives in the counted step."""
    return [
        Operation(
            str(event.fields["operation"]),
            int(event.fields["count"]),
            int(event.fields["elements"]),
            int(event.fields["num_bytes"]),
            float(event.fields["sent_bytes"]),
            int(event.fields["group_size"]),
            int(event.fields["hosts"]),
        )
        for event in _events(run.ranks[rank], "collectives")
    ]


def sent_bytes(run: Run) -> float:
    """Bytes that a rank sends in a step by ring algorithms, for what was dispatched."""
    return sum(operation.sent_bytes for operation in operations(run))


def backend_bytes(run: Run) -> float:
    """The same for what the backend makes of it: gloo's reduce-scatter is an all-reduce inside, of twice the bytes."""
    gloo = run.ranks[0].head.backend == "gloo"
    return sum(op.sent_bytes * (2 if gloo and op.kind == "reduce_scatter" else 1) for op in operations(run))


@dataclass(frozen=True)
class Wire:
    """What the interfaces counted, headers included, as a mean over the timed steps.

    Attributes:
        rank_bytes: sent by a rank, to ranks of its own host too, as a mean.
        link_bytes: sent over a host's link, as a mean over the hosts.
    """

    rank_bytes: float
    link_bytes: float


def wire(run: Run) -> Wire | None:
    """What was on the wire; None where hosts have no interfaces of their own."""
    first_of_host = {log.head.host: log for log in reversed(run.ranks)}
    events = [event.fields for log in first_of_host.values() for event in _events(log, "wire")]
    if not events or len(events) != len(first_of_host):
        return None
    links = [float(e["wire_sent_bytes"]) / float(e["steps"]) for e in events]
    inside = [float(e["inside_bytes"]) / float(e["steps"]) for e in events]
    return Wire((sum(links) + sum(inside)) / run.world_size, sum(links) / len(links))


def timed_steps_s(run: Run) -> np.ndarray:
    """Seconds of each step in which nothing was counted: of the slowest rank, as all wait for it."""
    first = _int(run, "timed_from")
    times = [[step.end_ns - step.start_ns for step in log.steps[first:]] for log in run.ranks]
    steps = min((len(of_rank) for of_rank in times), default=0)
    return np.array([of_rank[:steps] for of_rank in times]).max(axis=0) / 1e9 if steps else np.array([])


def fast_steps_s(record: Record) -> dict[str, np.ndarray]:
    """By strategy: seconds of the timed steps without hosts and links; empty where that was not run."""
    run = record.runs.get(Role.FAST)
    if run is None:
        return {}
    found: dict[str, np.ndarray] = {}
    for name in STRATEGIES:
        times = [[s.end_ns - s.start_ns for s in log.steps if s.counts.get(name)] for log in run.ranks]
        if times and times[0] and len({len(of_rank) for of_rank in times}) == 1:
            found[name] = np.array(times).max(axis=0) / 1e9
    return found


def losses(run: Run) -> np.ndarray:
    """By step: the loss over the global batch, the mean over ranks of equal batches."""
    of_ranks = [[step.scalar("loss_local") for step in log.steps if "loss_local" in step.scalars] for log in run.ranks]
    steps = min((len(of_rank) for of_rank in of_ranks), default=0)
    return np.array([of_rank[:steps] for of_rank in of_ranks]).mean(axis=0) if steps else np.array([])


def loss_gap(record: Record, run: Run) -> float | None:
    """Largest relative difference from one process's loss; None without one, or without steps in common."""
    single = record.runs.get(Role.SINGLE)
    if single is None:
        return None
    own, alone = losses(run), losses(single)
    steps = min(len(own), len(alone))
    return float(np.abs(own[:steps] / alone[:steps] - 1).max()) if steps else None


# ---- Beside the paper


def paper_state(run: Run) -> State | None:
    """What the paper has a rank keep in the run's stage, in its precision; None for one that stands for no stage."""
    name = strategy_of(run)
    if name not in STRATEGIES:
        return None
    params, size = _int(run, "num_parameters"), _int(run, "element_bytes", 4)
    if name == "hsdp":
        found = hsdp_state(params, run.world_size, _int(run, "replicas", 1), recipe("fp32 Adam"))
    else:
        found = state(params, run.world_size, STRATEGIES[name].stage, recipe("fp32 Adam"))
    return State(*(part * size / 4 for part in (found.parameters, found.gradients, found.optimizer_state)))


def paper_bytes(run: Run) -> float | None:
    """What the paper has a rank send in a step; for hsdp inside the groups and between them together."""
    name = strategy_of(run)
    if name not in STRATEGIES:
        return None
    params, size = _int(run, "num_parameters"), _int(run, "element_bytes", 4)
    if name == "hsdp":
        return sum(hsdp_traffic(params, run.world_size, _int(run, "replicas", 1))) * size
    return traffic(params, run.world_size, STRATEGIES[name].stage) * size


COUNTED_AS = {
    ("ddp-default", "buffers"): "the buckets: a second copy of the gradients (gradient_as_bucket_view=False)",
    ("zero1", "optimizer_state"): "state divided by whole tensors, not evenly",
    ("fsdp2-no-reshard", "parameters"): "weights are divided too, between steps",
    ("deepspeed-1", "gradients"): "gradients are divided already; whole tensors at the borders of shares",
    ("deepspeed-2", "gradients"): "whole tensors at the borders of shares",
    ("deepspeed-1", "optimizer_state"): "a second copy of its share of the weights",
    ("deepspeed-2", "optimizer_state"): "a second copy of its share of the weights",
    ("deepspeed-3", "optimizer_state"): "a second copy of its share of the weights",
    ("deepspeed-3", "unsharded"): "small weights that stay whole",
    ("deepspeed-1", "buffers"): "flags",
    ("deepspeed-2", "buffers"): "flags",
    ("deepspeed-3", "buffers"): "bucket in which gradients are reduced, and flags",
}
"""Why an implementation keeps more or less of a category than the paper, after a backward pass."""

UNEVEN = "rows that do not divide by the ranks"


@dataclass(frozen=True)
class Leftover:
    """A part of what a rank keeps beyond the paper's formula: bytes, negative where it keeps less."""

    name: str
    num_bytes: float


def leftovers(run: Run, rank: int = 0) -> list[Leftover]:
    """All that sets a rank's bytes after a backward pass apart from the paper's; the sum is exact."""
    paper, of_rank = paper_state(run), own_account(run)
    after = kept(run).get("backward_end")
    if paper is None or after is None or len(of_rank) != run.world_size:
        return []
    expected = {
        "parameters": paper.parameters,
        "gradients": paper.gradients,
        "optimizer_state": paper.optimizer_state,
    }
    counters = float(of_rank[rank].get("step_counters", 0))
    found: dict[str, float] = {"Adam's counters of steps": counters} if counters else {}
    for category, num_bytes in zip(CATEGORIES, after[rank], strict=True):
        rest = float(num_bytes) - expected.get(category, 0.0) - (counters if category == "optimizer_state" else 0.0)
        if abs(rest) >= 0.5:
            name = COUNTED_AS.get((strategy_of(run), category), UNEVEN)
            found[name] = found.get(name, 0.0) + rest
    return [Leftover(name, num_bytes) for name, num_bytes in found.items()]


def misses(run: Run) -> dict[str, int]:
    """By category: bytes by which what is alive after a backward pass differs from the implementation's own account.

    Summed over ranks, without signs; empty where one of the two was not recorded. All zero is exact.
    """
    after, accounts = kept(run).get("backward_end"), own_account(run)
    if after is None or len(accounts) != run.world_size:
        return {}
    found = {}
    for at, category in enumerate(CATEGORIES):
        found[category] = sum(abs(int(after[rank][at]) - account.get(category, 0)) for rank, account in enumerate(accounts))
    return found


def largest(values: Iterable[float]) -> float:
    """The largest, or NaN of none."""
    return max(values, default=float("nan"))


@dataclass(frozen=True)
class Wrapped:
    """One module that all ranks gave to a wrapper that shards it.

    Attributes:
        weights: a hash of the whole weights that each rank gave.
        synced: whether the wrapper was told to send rank 0's weights to all.
        where: file:line of the call.
    """

    weights: tuple[str, ...]
    synced: bool
    where: str


def wrapped(run: Run) -> list[Wrapped]:
    """The modules that were sharded, in order; those alone of which every rank gave whole weights, and as many."""
    logs = [[event.fields for event in log.events if event.name == "sharding"] for log in run.ranks]
    calls = zip(*logs, strict=False)
    return [
        Wrapped(tuple(str(f["weights"]) for f in of_ranks), bool(of_ranks[0]["synced"]), str(of_ranks[0]["where"]))
        for of_ranks in calls
        if len({f["tensors"] for f in of_ranks}) == 1 and all(f["weights"] for f in of_ranks)
    ]
