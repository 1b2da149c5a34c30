"""Does the device wait for data?

By the share of a step that passes before its batch is there, in stretches of the run: over a tenth in nearly all of them
is a finding, under a tenth in nearly all is none, and what lies between is noise. A run on one ready batch, where the
record holds one, has the last word: if that is no faster, data are not what is waited for.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.roles import Role
from ...record.schema import Record, Run
from ..catalogue import Said, said
from ..spread import FLOOR_S
from ..under_load import hindered, is_heavy
from ..verdict import Verdict, answering
from .measures import ENOUGH, Waits, counted, judged_steps, mean_waits, sharing, times_faster, waits

NAME = "starved-input"
QUESTION = "Does the device wait for data?"
TIMED = True
_answer = answering(NAME, QUESTION)

LIMIT = 0.10
"""Share of a step that may pass in waiting for its batch."""

NEARLY_ALL = 0.8
"""Share of the stretches that must agree."""

TOO_LITTLE_S = 0.001
"""Under this a fetch costs what a DataLoader costs for any batch; it shows in very small steps only."""

WORK_S = 0.0005
"""A rank that computes less than this on a batch does no work that data could hold up."""

DUMMY_GAIN = 1.05
"""A run without input must be this many times as fast, or waiting for data is not what makes the steps long."""


def detect(record: Record) -> Verdict:
    """Judge the rank that waits longest."""
    run = record.run
    if not any(span.lane == "data" for log in run.ranks for step in log.steps for span in step.spans):
        return _answer("not_applicable", "no-fetching-recorded")
    found = {log.head.rank: wait for log in run.ranks if (wait := waits(log)) is not None}
    if not found:
        steps = min(len(judged_steps(log)) for log in run.ranks)
        return _answer("inconclusive", "too-few-steps-to-tell-waiting", steps=steps, least=ENOUGH + 2)
    worst = max(found, key=lambda rank: found[rank].share)
    wait, gain = found[worst], times_faster(record, Role.DUMMY)
    evidence = _evidence(record, wait, gain)
    return _little(run, wait, evidence) or _unsure(run, wait, gain, evidence) or _waits(record, found, worst, gain, evidence)


def _little(run: Run, wait: Waits, evidence: dict[str, Quantity]) -> Verdict | None:
    """Where there is little to wait for, or to compute; None where there is enough of both."""
    if wait.seconds < TOO_LITTLE_S:
        return _answer("clear", "batch-is-there", evidence, wait_ms=wait.seconds * 1e3)
    if wait.compute < WORK_S:
        return _answer("inconclusive", "next-to-nothing-computed", evidence, compute_ms=wait.compute * 1e3)
    # what others take of the cores makes computing longer, and a wait for a disk a smaller share
    if 1 - _over(wait) >= NEARLY_ALL and wait.share * hindered(run) <= LIMIT and wait.share <= LIMIT:
        return _answer("clear", "little-waiting", evidence, share=wait.share)
    return None


def _unsure(run: Run, wait: Waits, gain: float | None, evidence: dict[str, Quantity]) -> Verdict | None:
    """Where noise, other programs or a run on one batch speak against it; None where nothing does."""
    if wait.share <= LIMIT or _over(wait) < NEARLY_ALL:
        low, high = min(wait.blocks), max(wait.blocks)
        return _answer("inconclusive", "waiting-varies", evidence, low=low, high=high, limit=LIMIT)
    if gain is None and wait.seconds < FLOOR_S:  # what a worker's pass of a batch takes, or a turn of the scheduler
        return _answer("inconclusive", "wait-too-short-to-blame", evidence, wait_ms=wait.seconds * 1e3, share=wait.share)
    if is_heavy(run):  # workers of the loader are hindered without bound, whatever part of a step the wait is
        return _answer("inconclusive", "loader-hindered", evidence, share=wait.share)
    if gain is not None and gain < DUMMY_GAIN:
        return _answer("inconclusive", "no-faster-on-one-batch", evidence, share=wait.share)
    return None


def _waits(
    record: Record, found: dict[int, Waits], worst: int, gain: float | None, evidence: dict[str, Quantity]
) -> Verdict:
    wait, notes = found[worst], []
    if wait.seconds > wait.compute:
        notes.append(said("longer-than-the-model"))
    if gain is not None:
        notes.append(said("faster-on-one-batch", gain=gain))
    known = {
        "where": str(record.run.fact("loader_where", "")) or None,
        "waste": min(1.0, max(0.0, 1 - 1 / gain)) if gain else wait.share,
        "notes": tuple(notes),
        "wait_ms": wait.seconds * 1e3,
        "compute_ms": wait.compute * 1e3,
        "remedy": _remedy(record),
    }
    if len(found) > 1 and _alone(found, worst):
        return _answer("found", "one-rank-waits-for-data", evidence, **known, rank=worst)
    return _answer("found", "ranks-wait-for-data", evidence, **known)


def _over(wait: Waits) -> float:
    """Share of the stretches in which waiting takes more than it may."""
    return sum(share > LIMIT for share in wait.blocks) / len(wait.blocks)


def _alone(found: dict[int, Waits], worst: int) -> bool:
    """Whether one rank waits and the others do not: its own disk or processor is what is slow."""
    return all(wait.share <= LIMIT for rank, wait in found.items() if rank != worst)


def _remedy(record: Record) -> Said:
    """What suits the evidence."""
    run, inline, shared = record.run, times_faster(record, Role.INLINE), sharing(record)
    workers = int(run.fact("workers", 0) or 0)  # pyright: ignore[reportArgumentType]
    if inline is not None and inline > DUMMY_GAIN:
        return said("take-workers-away")
    if counted(run, "store_bytes"):
        return said("read-the-store-once")
    if shared is not None and shared.at_once < 1.5 and shared.slowdown > 1.5:
        return said("look-for-a-lock")
    return said("workers-cannot-keep-up", workers=workers) if workers else said("prepare-ahead")


def _evidence(record: Record, wait: Waits, gain: float | None) -> dict[str, Quantity]:
    """The mean over ranks, as the measures have it, then the rank that waits longest, which is judged."""
    source, mean = record.store_source, mean_waits(record.run) or wait
    found = {
        "data_time": Quantity(mean.seconds * 1e3, "ms a step", source),
        "compute_time": Quantity(mean.compute * 1e3, "ms a step"),
        "data_share": Quantity(mean.share, "of step time", source),
        "data_time_longest": Quantity(wait.seconds * 1e3, "ms a step, of the rank that waits longest", source),
        "data_share_longest": Quantity(wait.share, "of step time, of the rank that waits longest", source),
        "data_share_low": Quantity(min(wait.blocks), "of step time", source),
        "data_share_high": Quantity(max(wait.blocks), "of step time", source),
        "steps": Quantity(wait.steps, "judged"),
    }
    if gain is not None:
        found["dummy_batch_ratio"] = Quantity(gain, "x this run's rate", source)
    return found
