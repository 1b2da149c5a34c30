"""Compute and communication out of records: what covers what, who was late, how often gradients were reduced. Pure.

Exposed is the time in which a collective is under way and this rank computes nothing. A rank that waits for a late one
has a collective under way too; so of a step the exposure is that of the rank with the least: the last one to arrive waits
for the link alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...record.once import once
from ...record.schema import RankLog, Run, Span, Step
from ..runs import looked_at, steps_together

Interval = tuple[int, int]


def union_of(intervals: Iterable[Interval]) -> list[Interval]:
    """The same time as disjoint intervals, in order.

    >>> union_of([(5, 9), (0, 3), (2, 4)])
    [(0, 4), (5, 9)]
    """
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged


def length_ns(intervals: Iterable[Interval]) -> int:
    """Length of disjoint intervals."""
    return sum(end - start for start, end in intervals)


def outside_ns(intervals: list[Interval], cover: list[Interval]) -> int:
    """How much of the one lies outside the other; both disjoint and in order.

    >>> outside_ns([(0, 10)], [(2, 4), (8, 12)])
    6
    """
    covered, at = 0, 0
    for start, end in intervals:
        while at < len(cover) and cover[at][1] <= start:
            at += 1
        look = at
        while look < len(cover) and cover[look][0] < end:
            covered += min(end, cover[look][1]) - max(start, cover[look][0])
            look += 1
    return length_ns(intervals) - covered


def without(intervals: list[Interval], away: list[Interval]) -> list[Interval]:
    """What is left of the one where the other is cut out; both disjoint and in order.

    >>> without([(0, 10)], [(2, 4), (8, 12)])
    [(0, 2), (4, 8)]
    """
    left, at = [], 0
    for start, end in intervals:
        while at < len(away) and away[at][1] <= start:
            at += 1
        look = at
        while look < len(away) and away[look][0] < end:
            if away[look][0] > start:
                left.append((start, away[look][0]))
            start = max(start, away[look][1])
            look += 1
        if start < end:
            left.append((start, end))
    return left


def _lane(spans: Iterable[Span], lane: str) -> list[Interval]:
    return union_of([(span.start_ns, span.end_ns) for span in spans if span.lane == lane])


def _computing(spans: Iterable[Span], name: str | None = None) -> list[Interval]:
    """Spans of computing (of a name, if given) without the time in which the rank is said to wait."""
    spans = list(spans)
    own = union_of((s.start_ns, s.end_ns) for s in spans if s.lane == "compute" and name in (None, s.name))
    return without(own, _lane(spans, "idle"))


class Split(NamedTuple):
    """One step of one rank, in nanoseconds.

    Attributes:
        step_ns: from its beginning to its end.
        compute_ns, comm_ns: covered by computing, and by collectives under way.
        exposed_ns: collectives under way and nothing computed.
        sum_ns: the collectives' durations added up; more than comm_ns where they queue.
        backward_ns: covered by backward passes.
    """

    step_ns: int
    compute_ns: int
    comm_ns: int
    exposed_ns: int
    sum_ns: int
    backward_ns: int

    @property
    def other_ns(self) -> int:
        """Neither computing nor a collective: the program between its parts."""
        return self.step_ns - self.compute_ns - self.exposed_ns


def split(step: Step) -> Split:
    """What a step's time went into."""
    compute, comm = _computing(step.spans), _lane(step.spans, "comm")
    return Split(
        step_ns=step.end_ns - step.start_ns,
        compute_ns=length_ns(compute),
        comm_ns=length_ns(comm),
        exposed_ns=outside_ns(comm, compute),
        sum_ns=sum(span.end_ns - span.start_ns for span in step.spans if span.lane == "comm"),
        backward_ns=length_ns(_computing(step.spans, "backward")),
    )


def _sum(parts: Iterable[Split]) -> Split:
    """Several steps' time together."""
    return Split(*map(sum, zip(*parts, strict=True)))


def by_update(steps: list[tuple[Step, ...]]) -> list[list[tuple[Step, ...]]]:
    """The steps up to each step of the optimizer: a program may make each micro-batch a step of its own.

    Each step by itself where no optimizer was watched; micro-batches after its last step are left out.
    """
    ends = [any(of_ranks[0].counts.get(name) for name in ("updates", "scaler_steps")) for of_ranks in steps]
    if not any(ends):
        return [[of_ranks] for of_ranks in steps]
    cuts = [0, *(place + 1 for place, end in enumerate(ends) if end)]
    return [steps[start:end] for start, end in itertools.pairwise(cuts)]


def is_alone(step: Step) -> bool:
    """Whether a step only computes, beside the run, to compare with."""
    return bool(step.counts.get("alone"))


def training_steps(run: Run) -> list[tuple[Step, ...]]:
    """By step: that step on every rank; those that compute alone are left out, and those that were only followed."""
    return once(
        run,
        "training_steps",
        lambda: [
            of_ranks for of_ranks in _steps(run) if not is_alone(of_ranks[0]) and len(looked_at(of_ranks)) == len(of_ranks)
        ],
    )


def _steps(run: Run) -> Iterator[tuple[Step, ...]]:
    return zip(*steps_together(run), strict=True)


def warm_up(run: Run) -> int:
    """Steps at the beginning that are not measured: as declared, else two, in which DDP sets its buckets up."""
    declared, steps = run.fact("warm_up"), len(training_steps(run))
    if isinstance(declared, int) and not isinstance(declared, bool):
        return min(declared, steps)
    return min(2, max(0, steps - 1))


def measured_steps(run: Run) -> list[tuple[Step, ...]]:
    """By step, after the warm-up: that step on every rank."""
    return training_steps(run)[warm_up(run) :]


def alone_steps(run: Run) -> list[tuple[Step, ...]]:
    """By step: the same computing with nothing sent, on every rank."""
    return [of_ranks for of_ranks in _steps(run) if is_alone(of_ranks[0])]


def longest_s(of_ranks: tuple[Step, ...]) -> float:
    """Seconds of a step: the longest of the ranks'."""
    return max(step.end_ns - step.start_ns for step in of_ranks) / 1e9


@dataclass(frozen=True)
class Exposure:
    """By measured step, in seconds: the step, and what of it is communication.

    Attributes:
        step_s: the longest of the ranks'.
        compute_s, backward_s: the mean over the ranks.
        comm_s, exposed_s, sum_s: of the rank with the least, which waits for no other.
    """

    step_s: np.ndarray
    compute_s: np.ndarray
    backward_s: np.ndarray
    comm_s: np.ndarray
    exposed_s: np.ndarray
    sum_s: np.ndarray

    @property
    def hidden(self) -> np.ndarray:
        """By step: the share of communication behind which something is computed."""
        return 1 - self.exposed_s / np.maximum(self.comm_s, 1e-12)


def computing_is_known(run: Run, steps: list[tuple[Step, ...]] | None = None) -> bool:
    """Whether spans of computing are computing alone, as far as collectives lie in them.

    A span that a program puts around `loss.backward()` of a DDP module holds DDP's wait for the reductions too, and what
    lies in it looks hidden. A watched module says when all gradients were computed; where none was, a collective within a
    span of computing tells nothing.
    """
    if steps is None:
        return once(run, "computing_is_known", lambda: _computing_is_known(measured_steps(run)))
    return _computing_is_known(steps)


def _computing_is_known(given: list[tuple[Step, ...]]) -> bool:
    for of_ranks in given:
        for step in of_ranks:
            comm = [] if step.series.get("backward_computed_ns") else _lane(step.spans, "comm")
            if comm and outside_ns(comm, _computing(step.spans)) < length_ns(comm):
                return False
    return True


def exposure(run: Run, steps: list[tuple[Step, ...]] | None = None) -> Exposure | None:
    """Split the measured steps (or those given).

    None where there is no step, no collective was timed, or it is not known what was computing and what a wait.
    """
    if steps is None:
        return once(run, "exposure", lambda: _exposure(measured_steps(run)))
    return _exposure(steps)


def _exposure(given: list[tuple[Step, ...]]) -> Exposure | None:
    if not any(span.lane == "comm" for of_ranks in given for step in of_ranks for span in step.spans):
        return None
    if not _computing_is_known(given):
        return None
    found = [[_sum(split(step) for step in of_rank) for of_rank in zip(*update, strict=True)] for update in by_update(given)]
    if not found or not any(part.comm_ns for parts in found for part in parts):
        return None

    def over(parts_to_ns) -> np.ndarray:
        return np.array([parts_to_ns(parts) for parts in found]) / 1e9

    least = [min(parts, key=lambda part: part.exposed_ns) for parts in found]
    return Exposure(
        step_s=over(lambda parts: max(part.step_ns for part in parts)),
        compute_s=over(lambda parts: np.mean([part.compute_ns for part in parts])),
        backward_s=over(lambda parts: np.mean([part.backward_ns for part in parts])),
        comm_s=over(lambda parts: min(part.comm_ns for part in parts)),
        exposed_s=np.array([part.exposed_ns for part in least]) / 1e9,
        sum_s=over(lambda parts: min(part.sum_ns for part in parts)),
    )


def is_sweep(run: Run) -> bool:
    """Whether the run tried several bucket sizes in turn."""
    return any("cap_mib" in step.scalars for log in run.ranks for step in log.steps)


def ddp_fact(log: RankLog, name: str, default: object = None) -> object:
    """What a watched module said of itself, at the start or where the watch began later."""
    if name in log.head.facts:
        return log.head.facts[name]
    return next((event.fields[name] for event in log.events if event.name == "ddp" and name in event.fields), default)


@dataclass(frozen=True)
class Reductions:
    """How gradients were reduced, by rank 0 and the measured steps.

    Attributes:
        passes: backward passes up to a step of the optimizer (K), the median.
        reduced: of these, passes that reduced, the median.
        left_out: steps of the optimizer whose last backward pass did not reduce.
        steps: how many steps.
        never: whether no pass of the whole run reduced.
        in_no_sync_forward, in_no_sync_backward: share of the passes whose forward, and whose backward, ran in no_sync.
        kept_in_vain: passes that began in sync and whose backward was in no_sync: they reduce all the same.
    """

    passes: float
    reduced: float
    left_out: int
    steps: int
    never: bool
    in_no_sync_forward: float
    in_no_sync_backward: float
    kept_in_vain: int


def reductions(run: Run) -> Reductions | None:
    """How often gradients were reduced; None where no DDP module was watched."""
    watched = [of_ranks[0] for of_ranks in training_steps(run) if of_ranks[0].counts.get("backwards")]
    if not watched:
        return None
    measured = [of_ranks for of_ranks in measured_steps(run) if of_ranks[0].counts.get("backwards")]
    updates = [[first for first, *_ in update] for update in by_update(measured or [(step,) for step in watched])]
    forward, backward = _series(watched, "sync_at_forward"), _series(watched, "sync_at_backward")
    return Reductions(
        passes=float(np.median([_per_update(update, "backwards") for update in updates])),
        reduced=float(np.median([_per_update(update, "reductions") for update in updates])),
        left_out=sum(not did[-1] for update in updates if len(did := _series(update, "pass_reduced"))),
        steps=len(watched),
        never=not any(step.counts.get("reductions") for step in watched),
        in_no_sync_forward=float(np.mean(forward == 0)) if len(forward) else 0.0,
        in_no_sync_backward=float(np.mean(backward == 0)) if len(backward) else 0.0,
        kept_in_vain=int(((forward == 1) & (backward == 0)).sum()) if len(forward) == len(backward) else 0,
    )


def _per_update(steps: list[Step], name: str) -> float:
    """A counter's sum over some steps, for each step of the optimizer in them."""
    total, steps_taken = (sum(step.counts.get(what, 0) for step in steps) for what in (name, "updates"))
    return total / max(1, steps_taken)


def _series(steps: Iterable[Step], name: str) -> np.ndarray:
    return np.array([value for step in steps for value in step.series.get(name, [])], dtype=np.int64)


@dataclass(frozen=True)
class Buckets:
    """The buckets of one reduction: bytes and number of parameters of each, in the order in which they were ready."""

    num_bytes: np.ndarray
    params: np.ndarray


def buckets(run: Run, step: Step | None = None) -> Buckets | None:
    """The buckets of the last reduction (of a step, if given) on rank 0; None where none was seen."""
    steps = [step] if step is not None else [of_ranks[0] for of_ranks in measured_steps(run) or training_steps(run)]
    for of in reversed(steps):
        passes = of.series.get("bucket_pass")
        if passes:
            at = np.array(passes) == passes[-1]
            return Buckets(np.array(of.series["bucket_bytes"])[at], np.array(of.series["bucket_params"])[at])
    return None


@dataclass(frozen=True)
class Arrivals:
    """When each rank came to each collective of one backward pass, in seconds from the first rank's backward.

    Attributes:
        step: its number.
        begin_s: by rank: the beginning of its backward pass.
        ready_s: by rank and bucket.
    """

    step: int
    begin_s: np.ndarray
    ready_s: np.ndarray

    @property
    def late_s(self) -> np.ndarray:
        """By rank: by how much it came later than the middle of the ranks (the earlier of two) to its worst bucket."""
        middle = np.sort(self.ready_s, axis=0)[(len(self.ready_s) - 1) // 2]
        return (self.ready_s - middle).max(axis=1)

    @property
    def late_at_start_s(self) -> np.ndarray:
        """By rank: by how much later its backward pass began."""
        return self.begin_s - np.sort(self.begin_s)[(len(self.begin_s) - 1) // 2]


def arrivals(run: Run) -> list[Arrivals]:
    """The arrivals of each reduction after the warm-up; passes that ranks saw differently are left out."""
    found = []
    for of_ranks in measured_steps(run):
        number_of = [step.series.get("bucket_pass", []) for step in of_ranks]
        if not number_of[0] or any(numbers != number_of[0] for numbers in number_of):
            continue
        if any("bucket_ready_ns" not in step.series for step in of_ranks):
            continue
        for number in sorted(set(number_of[0])):
            at = np.array(number_of[0]) == number
            ready = np.array([np.array(step.series["bucket_ready_ns"], dtype=np.int64)[at] for step in of_ranks])
            begin = np.array([step.series["backward_start_ns"][number] for step in of_ranks], dtype=np.int64)
            first = begin.min()
            found.append(Arrivals(of_ranks[0].step, (begin - first) / 1e9, (ready - first) / 1e9))
    return found


def weights_equal_on_ranks(run: Run) -> bool | None:
    """Whether all ranks ended with the same weights, to the bit; None with one rank or where no hash was kept."""
    hashes = [log.digests.get("weights") for log in run.ranks]
    return None if len(hashes) < 2 or None in hashes else len(set(hashes)) == 1
