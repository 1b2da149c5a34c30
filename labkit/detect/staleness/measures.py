"""Arrays and numbers out of records of asynchronous training: who computed on which version, when, to what effect.

A program records, in the step in which it computes a gradient, two scalars: `version_pulled`, how many updates had gone
into the weights that it computed on, and `version_pushed`, how many had gone into those that the gradient was applied to;
with `loss_local` and `batch_samples` as everywhere. That is all that is needed. Ranks that average their gradients and
step together record the step's number for both; a rank that only serves records no steps. Curvature, where someone
measured it, is an event `sharpness` with the fields `at_step` and `value`, or a fact `sharpness`; the learning rate and
the momentum are facts too, `lr` and `momentum`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...record.quantity import Quantity
from ...record.roles import Role
from ...record.schema import Record, Run, Step
from ...theory.delay import MAX_DELAY, stability_limit, staleness_sum
from ..runs import steps_together, union_ns, weights_equal, weights_gap
from ..spread import Slow

"""Roles that begin like this are runs of the very same program with the very same settings."""


@dataclass(frozen=True)
class Pushes:
    """All gradients of a run, in the order in which they were applied.

    Attributes:
        rank: who computed it.
        pulled, pushed: version on which it was computed, and to which it was applied.
        loss, samples: of its batch; NaN and 0 where not recorded.
        begun_s, applied_s: seconds since the first gradient was begun.
    """

    rank: np.ndarray
    pulled: np.ndarray
    pushed: np.ndarray
    loss: np.ndarray
    samples: np.ndarray
    begun_s: np.ndarray
    applied_s: np.ndarray

    def __len__(self) -> int:
        return len(self.rank)

    @cached_property
    def workers(self) -> list[int]:
        """The ranks that computed gradients."""
        return np.unique(self.rank).tolist()

    @cached_property
    def staleness(self) -> np.ndarray:
        """By gradient: updates between its pull and its push."""
        return self.pushed - self.pulled

    @property
    def one_by_one(self) -> bool:
        """Whether each gradient made an update of its own, as at a parameter server."""
        return len(np.unique(self.pushed)) == len(self)

    def of_rank(self, rank: int) -> np.ndarray:
        """Staleness of one rank's gradients, in order."""
        return self.staleness[self.rank == rank]

    @property
    def elapsed_s(self) -> float:
        """From the first gradient begun to the last one applied."""
        return float(self.applied_s.max())


def pushes(run: Run) -> Pushes | None:
    """The run's gradients; None where versions were not recorded."""
    found: list[tuple[int, Step]] = []
    for rank, log in enumerate(run.ranks):
        for step in log.steps:
            if {"version_pulled", "version_pushed"} <= step.scalars.keys():
                found.append((rank, step))
    if not found:
        return None
    found.sort(key=lambda one: (one[1].scalar("version_pushed"), one[0]))
    begun = np.array([step.start_ns for _, step in found], dtype=np.float64)
    applied = np.array([step.end_ns for _, step in found], dtype=np.float64)
    return Pushes(
        rank=np.array([rank for rank, _ in found]),
        pulled=np.array([int(step.scalar("version_pulled")) for _, step in found]),
        pushed=np.array([int(step.scalar("version_pushed")) for _, step in found]),
        loss=np.array([step.scalar("loss_local") if "loss_local" in step.scalars else np.nan for _, step in found]),
        samples=np.array([step.scalar("batch_samples") if "batch_samples" in step.scalars else 0 for _, step in found]),
        begun_s=(begun - begun.min()) / 1e9,
        applied_s=(applied - begun.min()) / 1e9,
    )


@dataclass(frozen=True)
class Losses:
    """The loss of all ranks together, by window of equally many gradients.

    Attributes:
        loss: mean over the window.
        samples: by all ranks together, up to the end of the window.
        time_s: up to the end of the window.
        first: mean loss of the very first gradients, one of each rank.
        last: mean loss of the last gradients; of at least three of each rank, or a tenth of all.
        last_error: standard error of that mean.
    """

    loss: np.ndarray
    samples: np.ndarray
    time_s: np.ndarray
    first: float
    last: float
    last_error: float


def loss_by_samples(run: Run) -> Losses | None:
    """The loss of a run, synchronous or not, against samples and time; None where it recorded no versions or no loss."""
    of_run = pushes(run)
    if of_run is None or not any("loss_local" in step.scalars for log in run.ranks for step in log.steps):
        return None
    workers, count = len(of_run.workers), len(of_run)
    window = min(count, 2 * workers)
    ends = np.arange(window, count + 1, workers)
    sums = np.array([of_run.loss[end - window : end].mean() for end in ends])
    tail = of_run.loss[-min(count, max(3 * workers, count // 10)) :]
    return Losses(
        loss=sums,
        samples=of_run.samples.cumsum()[ends - 1],
        time_s=np.maximum.accumulate(of_run.applied_s)[ends - 1],
        first=float(of_run.loss[:workers].mean()),
        last=float(tail.mean()),
        last_error=float(tail.std() / np.sqrt(len(tail))),
    )


def samples_per_s(run: Run) -> float | None:
    """Samples that all ranks together went through in a second, from the first gradient to the last."""
    of_run = pushes(run)
    return float(of_run.samples.sum() / of_run.elapsed_s) if of_run is not None and of_run.elapsed_s > 0 else None


def evaluated(run: Run) -> float | None:
    """Loss of the final weights on all data, if it was recorded."""
    values = [event.fields["loss"] for event in run.ranks[0].events if event.name == "evaluated" and "loss" in event.fields]
    return float(values[-1]) if values else None


def sharpness_of(record: Record) -> float | None:
    """The largest curvature that was measured: along the synchronous run, along this one, or before it; None if none was."""
    known: list[float] = []
    for run in (record.run, record.runs.get(Role.SYNC)):
        for log in run.ranks if run is not None else ():
            values = [event.fields.get("value") for event in log.events if event.name == "sharpness"]
            known += [float(v) for v in (*values, log.head.facts.get("sharpness")) if isinstance(v, (int, float))]
    return max(known, default=None)


@dataclass(frozen=True)
class Stability:
    """The learning rate beside what theory allows.

    Attributes:
        rate: lr·λ.
        limit: at which a quadratic with this delay and momentum becomes unstable.
        limit_without_delay: the same for a delay of 0.
        delay: the run's mean staleness, to the nearest version.
    """

    rate: float
    limit: float
    limit_without_delay: float
    delay: int

    @property
    def times_the_limit(self) -> float:
        return self.rate / self.limit


def stability(record: Record) -> Stability | None:
    """The run's learning rate beside the limits of theory; None where lr, versions or curvature are not known."""
    lr, momentum, curvature = record.run.fact("lr"), record.run.fact("momentum", 0.0), sharpness_of(record)
    of_run = pushes(record.run)
    if of_run is None or curvature is None or curvature <= 0:
        return None
    if not isinstance(lr, (int, float)) or not isinstance(momentum, (int, float)) or not 0 <= momentum < 1:
        return None
    delay = min(MAX_DELAY, max(0, round(float(of_run.staleness.mean()))))
    return Stability(lr * curvature, stability_limit(delay, momentum), stability_limit(0, momentum), delay)


def repeats_of(record: Record) -> list[Run]:
    """The runs of the same program with the same settings, the one under study first."""
    return [record.run, *(run for role, run in sorted(record.runs.items()) if Role.of(role) is Role.REPEAT)]


def arrival_repeats(record: Record) -> bool | None:
    """Whether gradients were applied in the same order of ranks in all repeats; None where that was not recorded."""
    orders = [pushes(run) for run in repeats_of(record)]
    if len(orders) < 2 or any(order is None for order in orders):
        return None
    first = orders[0]
    assert first is not None
    return all(np.array_equal(first.rank, order.rank) for order in orders[1:] if order is not None)


def weights_repeat(record: Record) -> bool | None:
    """Whether rank 0's final weights are equal to the bit in all repeats; None where they were not recorded."""
    hashes = [run.ranks[0].digests.get("weights") for run in repeats_of(record)]
    return None if len(hashes) < 2 or None in hashes else len(set(hashes)) == 1


@dataclass(frozen=True)
class Pace:
    """How long ranks take for a step, and how long they are in communication in it; as many steps as all ranks made.

    Attributes:
        numbers: of the steps.
        own_s: [steps, ranks]: the part of a step that is no communication.
        comm_s: [steps, ranks]: the part that is.
    """

    numbers: np.ndarray
    own_s: np.ndarray
    comm_s: np.ndarray

    @property
    def whole_s(self) -> np.ndarray:
        """By step: the longest of the ranks'."""
        return (self.own_s + self.comm_s).max(axis=1)

    def waited_s(self, slow: Slow) -> float:
        """By how much longer than the slow rank the others are in communication, in its slow steps, the mean: they wait.

        Of equal messages each rank has its part; what the slow one has is what they cost without waiting.
        """
        comm = self.comm_s[slow.steps]
        return max(0.0, float(np.delete(comm, slow.rank, axis=1).mean() - comm[:, slow.rank].mean()))

    def waited_of_gap(self, slow: Slow) -> float:
        """What the others wait, as a share of what the slow rank computes longer: 1 if they wait for all of it."""
        return min(1.0, self.waited_s(slow) * len(slow.steps) / slow.excess_s) if slow.excess_s > 0 else 0.0

    def waiting(self, slow: Slow) -> float:
        """Share of the other ranks' time, over all steps, that they wait for the slow one."""
        others = np.delete(self.own_s + self.comm_s, slow.rank, axis=1)
        return min(1.0, self.waited_s(slow) * len(slow.steps) * others.shape[1] / float(others.sum()))


def pace(run: Run) -> Pace | None:
    """The pace of each rank; None with one rank, or where a rank has no communication or no steps on record."""
    if run.world_size < 2:
        return None
    own, waits = [], []
    together = steps_together(run)
    for steps in together:
        comm = np.array([union_ns(span for span in step.spans if span.lane == "comm") for step in steps]) / 1e9
        lengths = np.array([step.end_ns - step.start_ns for step in steps]) / 1e9
        if not len(lengths) or not comm.any():
            return None
        own.append(np.maximum(lengths - comm, 1e-9))
        waits.append(comm)
    numbers = np.array([step.step for step in together[0]])
    return Pace(numbers, *(np.stack(each, axis=1) for each in (own, waits)))


def staleness_measures(record: Record) -> dict[str, Quantity]:
    """The measures of staleness, by name."""
    run = record.run
    of_run = pushes(run)
    found: dict[str, Quantity] = {}
    if of_run is not None:
        found |= _of_staleness(of_run)
        rate = samples_per_s(run)
        if rate is not None:
            found["samples_per_s"] = Quantity(rate, "samples/s", record.link_source)
        other = samples_per_s(record.runs[Role.SYNC]) if Role.SYNC in record.runs else None
        if rate is not None and other:
            found["throughput_over_sync"] = Quantity(rate / other, "x", record.link_source)
    for name, source in (("loss_final", run), ("loss_final_sync", record.runs.get(Role.SYNC))):
        value = evaluated(source) if source is not None else None
        if value is not None:
            found[name] = Quantity(value, "on all data")
    found |= _of_theory(record)
    for name, repeated in (("arrival_repeats", arrival_repeats(record)), ("weights_repeat", weights_repeat(record))):
        if repeated is not None:
            found[name] = Quantity(repeated)
    if Role.SINGLE in record.runs:
        gap, equal = weights_gap(run, record.runs[Role.SINGLE]), weights_equal(run, record.runs[Role.SINGLE])
        if gap is not None:
            found["weights_gap_to_single"] = Quantity(gap, "relative")
        if equal is not None:
            found["weights_equal_single"] = Quantity(equal)
    return found


def _of_staleness(of_run: Pushes) -> dict[str, Quantity]:
    staleness, workers = of_run.staleness, of_run.workers
    counts = np.bincount(of_run.rank)[workers]
    found = {
        "pushes": Quantity(len(of_run), "gradients"),
        "staleness_mean": Quantity(float(staleness.mean()), "versions"),
        "staleness_max": Quantity(int(staleness.max()), "versions"),
    }
    if of_run.one_by_one:
        as_derived = int(staleness.sum()) == staleness_sum(len(workers), len(of_run))
        found["mean_staleness_as_derived"] = Quantity(as_derived)
    if len(workers) > 1 and staleness.any():
        slow = workers[int(counts.argmin())]
        others = staleness[of_run.rank != slow]
        found["staleness_of_slowest"] = Quantity(float(of_run.of_rank(slow).mean()), "versions")
        found["staleness_of_others"] = Quantity(float(others.mean()), "versions")
    if len(workers) > 1:
        found["gradients_of_slowest"] = Quantity(int(counts.min()), "gradients")
        found["gradients_of_fastest"] = Quantity(int(counts.max()), "gradients")
    return found


def _of_theory(record: Record) -> dict[str, Quantity]:
    found: dict[str, Quantity] = {}
    lr, limits, curvature = record.run.fact("lr"), stability(record), sharpness_of(record)
    if isinstance(lr, (int, float)):
        found["learning_rate"] = Quantity(float(lr))
    if curvature is not None:
        found["sharpness_max"] = Quantity(curvature, "largest curvature met")
    if limits is not None:
        found["lr_over_limit"] = Quantity(limits.times_the_limit, "x the stability limit")
    return found
