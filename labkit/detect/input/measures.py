"""Measures of an input pipeline: what a step waits for data, when a rank computes, what ranks get of a shared thing.

Theory beside them. Without workers a step takes D + C. With w workers it takes max(D/w, C) where data cost waiting, and no
less than (D + C)/cores where they cost processor time. With a share f of the work under one lock, ranks that meet each step
do 1/(f + (1 - f)/W) of one rank's work (Amdahl, 1967), ranks that run free min(W, 1/f). A store of rate R gives W ranks R/W.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...record.clocks import one_clock
from ...record.once import once
from ...record.quantity import Quantity
from ...record.roles import Role
from ...record.schema import RankLog, Record, Run, Span, Step
from ...theory.input_model import amdahl as amdahl  # asked for here too: theory beside what was measured
from ...theory.input_model import expected_step as expected_step
from ...theory.input_model import free_running as free_running
from ...theory.input_model import serial_share
from ..runs import train_steps, union_ns

WARM_UP = 2
"""First steps of a run, in which workers start and caches fill."""

ENOUGH = 6
"""Steps to judge by."""

WINDOW_MS = 50.0


def judged_steps(log: RankLog) -> tuple[Step, ...]:
    """The steps that show how a rank runs once it runs: those of later epochs, or of the only one without its first two.

    The first epoch fills caches, and the first steps of a run start workers: both are paid once. The first step of an
    epoch waits for workers that have nothing ready yet: paid once an epoch, it is told apart (`epoch_start_s`). Epochs of
    very few steps are judged whole.
    """
    return once(log, "judged_steps", lambda: _judged(train_steps(log)))


def _judged(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    if not steps:
        return ()
    later = _without_starts([step for step in steps if step.epoch != steps[0].epoch])
    return later if len(later) >= ENOUGH else steps[WARM_UP:]


def _without_starts(steps: Sequence[Step]) -> tuple[Step, ...]:
    epochs: dict[int, list[Step]] = {}
    for step in steps:
        epochs.setdefault(step.epoch, []).append(step)
    return tuple([step for own in epochs.values() for step in (own[1:] if len(own) > ENOUGH else own)])


def epoch_start_s(log: RankLog) -> float | None:
    """Seconds that the first fetch of a later epoch takes, the median; None with one epoch."""
    firsts: dict[int, Step] = {}
    for step in train_steps(log):
        firsts.setdefault(step.epoch, step)
    later = list(firsts.values())[1:]
    return float(np.median(data_s(later))) if later else None


def lane_s(step: Step, lane: str) -> float:
    """Seconds of a step that a lane covers."""
    return union_ns([span for span in step.spans if span.lane == lane]) / 1e9


def data_s(steps: Sequence[Step]) -> np.ndarray:
    """By step: seconds spent waiting for its batch."""
    return np.array([lane_s(step, "data") for step in steps])


def step_s(steps: Sequence[Step]) -> np.ndarray:
    """By step: seconds, its fetching included."""
    return np.array([(step.end_ns - step.start_ns) / 1e9 for step in steps])


def compute_s(steps: Sequence[Step]) -> np.ndarray:
    """By step: seconds neither spent waiting for data nor in a collective."""
    return step_s(steps) - np.array(
        [union_ns([span for span in step.spans if span.lane in ("data", "comm")]) / 1e9 for step in steps]
    )


@dataclass(frozen=True)
class Waits:
    """What one rank waits for data.

    Attributes:
        share: of the time of its judged steps.
        blocks: the same for some stretches of them, one after the other: what noise leaves open.
        seconds: of a step, the mean.
        compute: seconds of a step that are neither data nor a collective, the mean.
        steps: judged.
    """

    share: float
    blocks: tuple[float, ...]
    seconds: float
    compute: float
    steps: int


def waits(log: RankLog) -> Waits | None:
    """What a rank waits for data; None with fewer steps than can be judged, or where no fetching was recorded."""
    return once(log, "waits", lambda: _waits(log))


def _waits(log: RankLog) -> Waits | None:
    steps = judged_steps(log)
    if len(steps) < ENOUGH or not any(span.lane == "data" for step in steps for span in step.spans):
        return None
    data, whole = data_s(steps), step_s(steps)
    count = max(2, min(5, len(steps) // 4))
    blocks = [
        float(d.sum() / w.sum()) for d, w in zip(np.array_split(data, count), np.array_split(whole, count), strict=True)
    ]
    return Waits(
        float(data.sum() / whole.sum()), tuple(blocks), float(data.mean()), float(compute_s(steps).mean()), len(steps)
    )


def mean_waits(run: Run) -> Waits | None:
    """What a rank waits for data and computes, the mean over ranks; None where none can be judged. It has no blocks."""
    known = [wait for log in run.ranks if (wait := waits(log)) is not None]
    if not known:
        return None
    share, seconds, compute = np.mean([(wait.share, wait.seconds, wait.compute) for wait in known], axis=0)
    return Waits(float(share), (), float(seconds), float(compute), min(wait.steps for wait in known))


def rank_rate(log: RankLog) -> float | None:
    """Samples a second of one rank, over its judged steps; None with too few of them, or where that is no number."""
    return once(log, "rank_rate", lambda: _rank_rate(log))


def _rank_rate(log: RankLog) -> float | None:
    steps = judged_steps(log)
    if len(steps) < ENOUGH:
        return None
    samples = sum(step.scalar("batch_samples") for step in steps) if "batch_samples" in steps[0].scalars else 0.0
    samples = samples or float(sum(len(keys) for step in steps for keys in step.digests.values()))
    seconds = float(step_s(steps).sum())
    return samples / seconds if seconds > 0 and math.isfinite(samples) else None


def samples_per_s(run: Run) -> float | None:
    """Samples a second of all ranks together; None where a rank has too few steps."""
    rates = [rank_rate(log) for log in run.ranks]
    known = [rate for rate in rates if rate is not None]
    return sum(known) if len(known) == len(rates) and all(known) else None


def times_faster(record: Record, role: str) -> float | None:
    """The rate of a run beside the one under study, as a multiple of its own; None where either is not known."""
    other = samples_per_s(record.runs[role]) if role in record.runs else None
    own = samples_per_s(record.run)
    return other / own if own and other else None


def speed_up(record: Record) -> float | None:
    """The rate of all ranks together as a multiple of one rank's that runs alone; None where that was not run."""
    alone = times_faster(record, "alone")
    return 1 / alone if alone else None


def share_alone(record: Record) -> float | None:
    """The share f of one rank's step that fetching takes while no other rank is there."""
    found = waits(record.runs[Role.ALONE].ranks[0]) if Role.ALONE in record.runs else None
    return found.share if found else None


def saw_tooth(log: RankLog, window_ms: float = WINDOW_MS) -> tuple[np.ndarray, np.ndarray]:
    """(middle of each window in seconds since the rank's first step, share of it spent computing: no data, no waiting)."""
    if not log.steps:
        return np.empty(0), np.empty(0)
    origin, window = log.steps[0].start_ns, window_ms * 1e6
    count = max(1, int((log.steps[-1].end_ns - origin) // window))
    busy = np.zeros(count)
    for start, end in computing(log):
        first, last = int((start - origin) // window), int((end - origin) // window)
        for place in range(first, min(last, count - 1) + 1):
            low, high = origin + place * window, origin + (place + 1) * window
            busy[place] += max(0.0, min(end, high) - max(start, low))
    return (np.arange(count) + 0.5) * window / 1e9, busy / window


def computing(log: RankLog) -> list[tuple[int, int]]:
    """Intervals in ns in which a rank computes: spans of compute without what a collective or a fetch covers."""
    found = []
    for step in log.steps:
        away = _merged(span for span in step.spans if span.lane in ("comm", "data"))
        for start, end in _merged(span for span in step.spans if span.lane == "compute"):
            for gap_start, gap_end in away:
                if gap_start > start:
                    found.append((start, min(end, gap_start)))
                start = max(start, gap_end)
                if start >= end:
                    break
            if start < end:
                found.append((start, end))
    return [(start, end) for start, end in found if end > start]


def _merged(spans) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted((span.start_ns, span.end_ns) for span in spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def fetches(run: Run) -> list[list[Span]]:
    """By rank: the fetches of its judged steps, on one time axis."""
    return [[fetch for step in judged_steps(log) for fetch in _fetches_of(step)] for log in run.ranks]


def _fetches_of(step: Step) -> list[Span]:
    """What `probe.batches` timed; of a program with names of its own all that it calls data, from first to last."""
    data = [span for span in step.spans if span.lane == "data"]
    named = [span for span in data if span.name == "fetch"]
    if named or not data:
        return named
    return [Span("fetch", "data", min(span.start_ns for span in data), max(span.end_ns for span in data))]


@dataclass(frozen=True)
class Sharing:
    """How ranks fare that fetch beside each other, against one that fetches alone.

    Attributes:
        alone_s: the time of a fetch alone, the median.
        slowdown: the time of the slowest rank's fetch in each round, the median, as a multiple of that.
        at_once: how many fetches are served at a time: fetches x alone_s / time in which some rank fetches. 1 is one after
            the other; where nothing is shared it is as many as fetch at a time.
        apart: share of the ends of fetches that come at least half of alone_s after the one before, on whichever rank. A
            lock spaces them all; what is shared by equal parts lets ranks end together.
    """

    alone_s: float
    slowdown: float
    at_once: float
    apart: float


def sharing(record: Record) -> Sharing | None:
    """How the fetches of several ranks get on with each other; None without the run of one rank alone to compare with."""
    run = record.run
    if Role.ALONE not in record.runs or run.world_size < 2:
        return None
    own, alone = fetches(run), fetches(record.runs[Role.ALONE])[0]
    if len(alone) < ENOUGH or min(len(spans) for spans in own) < ENOUGH:
        return None
    alone_ns = float(np.median([span.end_ns - span.start_ns for span in alone]))
    rounds = min(len(spans) for spans in own)
    slowest = [max(spans[k].end_ns - spans[k].start_ns for spans in own) for k in range(rounds)]
    every = [span for spans in own for span in spans]
    ends = np.sort([span.end_ns for span in every])
    return Sharing(
        alone_s=alone_ns / 1e9,
        slowdown=float(np.median(slowest) / alone_ns),
        at_once=float(len(every) * alone_ns / union_ns(every)),
        apart=float((np.diff(ends) >= 0.5 * alone_ns).mean()),
    )


def most_inside(run: Run, name: str = "inside the lock") -> int | None:
    """The largest number of ranks that were inside spans of this name at one moment; None where none was recorded."""
    if not one_clock(run):
        return None
    moments = []
    for log in run.ranks:
        for step in log.steps:
            for span in step.spans:
                if span.name == name:
                    moments += [(span.start_ns, 1), (span.end_ns, -1)]
    inside = np.cumsum([change for _, change in sorted(moments)])
    return int(inside.max()) if len(inside) else None


def counted(run: Run, name: str, *, later: bool | None = None) -> int:
    """A counter's sum over all ranks: of all epochs, of the first (later=False) or of those after it (later=True)."""
    total = 0
    for log in run.ranks:
        for step in log.steps:
            if later is None or (step.epoch != log.steps[0].epoch) == later:
                total += step.counts.get(name, 0)
    return total


def store_rates(run: Run) -> np.ndarray | None:
    """By rank: bytes a second from the store while the rank fetches; None where none were counted or workers fetch."""
    if run.fact("workers", 0) or not counted(run, "store_bytes", later=None):
        return None
    rates = []
    for log in run.ranks:
        steps = [step for step in judged_steps(log) if step.counts.get("store_bytes")]
        if len(steps) < ENOUGH:
            return None
        rates.append(sum(step.counts["store_bytes"] for step in steps) / float(data_s(steps).sum()))
    return np.array(rates)


def input_measures(record: Record) -> dict[str, Quantity]:
    """The measures of the lab, by name. Times and shares are of the judged steps, the mean over ranks."""
    run, found = record.run, {}
    source = record.store_source
    mean = mean_waits(run)
    if mean is not None:
        found["data_time"] = Quantity(1e3 * mean.seconds, "ms a step", source)
        found["compute_time"] = Quantity(1e3 * mean.compute, "ms a step")
        found["data_share"] = Quantity(mean.share, "of step time", source)
    starts = [start for log in run.ranks if (start := epoch_start_s(log)) is not None]
    if starts:
        found["first_batch_of_epoch"] = Quantity(1e3 * float(np.mean(starts)), "ms", source)
    rate = samples_per_s(run)
    if rate is not None:
        found["samples_per_s"] = Quantity(rate, "samples/s", source)
    for role, name in ((Role.DUMMY, "dummy_batch_ratio"), (Role.INLINE, "without_workers_ratio")):
        ratio = times_faster(record, role)
        if ratio is not None:
            found[name] = Quantity(ratio, "x this run's rate", source)
    gain, share = speed_up(record), share_alone(record)
    if gain is not None and share is not None:
        found["speed_up"] = Quantity(gain, "x one rank alone", source)
        meet = bool(run.fact("meets", False))
        found["fetch_share_alone"] = Quantity(share, "of a step alone")
        found["serial_share_fitted"] = Quantity(serial_share(gain, run.world_size, meet=meet), "of the work", "fitted")
    inside = most_inside(run)
    if inside is not None:
        found["ranks_inside_the_lock"] = Quantity(inside, "at most at once")
    rates = store_rates(run)
    if rates is not None:
        found["store_rate_per_rank"] = Quantity(float(rates.mean()) * 8 / 1e6, "Mbit/s, fetching", source)
    if any("prepared" in step.counts for log in run.ranks for step in log.steps):
        found["prepared_first_epoch"] = Quantity(counted(run, "prepared", later=False), "samples")
        found["prepared_later"] = Quantity(counted(run, "prepared", later=True), "samples")
    if record.storage is not None:
        found["store_bytes_first_epoch"] = Quantity(counted(run, "store_bytes", later=False), "bytes")
        found["store_bytes_later"] = Quantity(counted(run, "store_bytes", later=True), "bytes")
    return found


def input_invariants(record: Record) -> list[str]:
    """What comes out equal on every machine: how often samples were prepared and read, and how many held the lock."""
    found = input_measures(record)
    names = ("prepared_first_epoch", "prepared_later", "store_bytes_first_epoch", "store_bytes_later")
    lines = [f"  {name} = {found[name].value}" for name in names if name in found]
    if "ranks_inside_the_lock" in found:
        lines.append(f"  one_at_a_time_across_ranks = {found['ranks_inside_the_lock'].value == 1}")
    return lines
