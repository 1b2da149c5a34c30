"""Does the device wait for data?

By the share of a step that passes before its batch is there, in stretches of the run: over a tenth in nearly all of them
is a finding, under a tenth in nearly all is none, and what lies between is noise. A run on one ready batch, where the
record holds one, has the last word: if that is no faster, data are not what is waited for.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.roles import Role
from ...record.schema import Record
from ...words import plural
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

SPLIT_FIX = "record each batch by reading it through probe.batches(loader)"


def detect(record: Record) -> Verdict:
    """Judge the rank that waits longest."""
    run = record.run
    if not any(span.lane == "data" for log in run.ranks for step in log.steps for span in step.spans):
        return _answer("not_applicable", cause="the program recorded no fetching of data", fix=SPLIT_FIX)
    found = {log.head.rank: wait for log in run.ranks if (wait := waits(log)) is not None}
    if not found:
        steps = min(len(judged_steps(log)) for log in run.ranks)
        return _answer(
            "inconclusive",
            cause=f"too few to tell waiting from noise: {plural(steps, 'step')} after the first",
            fix=f"run {ENOUGH + 2} steps or more",
        )
    worst = max(found, key=lambda rank: found[rank].share)
    wait, gain = found[worst], times_faster(record, Role.DUMMY)
    evidence = _evidence(record, wait, gain)
    agree = sum(share > LIMIT for share in wait.blocks) / len(wait.blocks)
    if wait.seconds < TOO_LITTLE_S:
        return _answer("clear", evidence, cause=f"a batch is there after {wait.seconds * 1e3:.2g} ms")
    if wait.compute < WORK_S:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"a rank computes {wait.compute * 1e3:.2g} ms on a batch: next to nothing is done with the data, so that "
            "fetching them is all that there is to a step",
            fix="record a run that trains: forward and backward pass within the step",
        )
    # what others take of the cores makes computing longer, and a wait for a disk a smaller share
    stretch = hindered(run)
    if wait.share <= LIMIT and 1 - agree >= NEARLY_ALL and wait.share * stretch <= LIMIT:
        return _answer("clear", evidence, cause=f"{wait.share:.1%} of a step is spent waiting for data")
    if wait.share <= LIMIT or agree < NEARLY_ALL:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"waiting takes {min(wait.blocks):.0%} to {max(wait.blocks):.0%} of a step from one stretch of the run to "
            f"the next, on both sides of {LIMIT:.0%}",
            fix="run more steps on a quiet machine",
        )
    if is_heavy(run):  # workers of the loader are hindered without bound, whatever part of a step the wait is
        return _answer(
            "inconclusive",
            evidence,
            cause=f"waiting takes {wait.share:.0%} of a step, and other programs hinder whoever prepares the data",
            fix="run more steps on a quiet machine",
        )
    if gain is not None and gain < DUMMY_GAIN:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"{wait.share:.0%} of a step is spent waiting for data, and yet a run on one ready batch is no faster",
            fix="repeat both on a quiet machine; then look at what else a step waits for",
        )
    who = f"rank {worst} waits" if len(found) > 1 and _alone(found, worst) else "a rank waits"
    cause = f"{who} {wait.seconds * 1e3:.3g} ms for a batch and computes {wait.compute * 1e3:.3g} ms on it"
    if wait.seconds > wait.compute:
        cause += ": data take longer than the model"
    if gain is not None:
        cause += f"; on one ready batch the run is {gain:.1f} times as fast"
    return _answer(
        "found",
        evidence,
        cause=cause,
        fix=_fix(record, gain),
        where=str(run.fact("loader_where", "")) or None,
        waste=min(1.0, max(0.0, 1 - 1 / gain)) if gain else wait.share,
    )


def _alone(found: dict[int, Waits], worst: int) -> bool:
    """Whether one rank waits and the others do not: its own disk or processor is what is slow."""
    return all(wait.share <= LIMIT for rank, wait in found.items() if rank != worst)


def _fix(record: Record, gain: float | None) -> str:
    """What suits the evidence."""
    run, inline, shared = record.run, times_faster(record, Role.INLINE), sharing(record)
    workers = int(run.fact("workers", 0) or 0)  # pyright: ignore[reportArgumentType]
    if inline is not None and inline > DUMMY_GAIN:
        return "take the workers away (num_workers=0): without them this run is faster"
    if counted(run, "store_bytes"):
        return "keep what was read on the local disk (or in memory), so that the store is read once and not each epoch"
    if shared is not None and shared.at_once < 1.5 and shared.slowdown > 1.5:
        return "ranks get their data one after the other: look for a lock or a file that they share, and take it away"
    if workers == 0:
        return (
            "prepare ahead: num_workers=2 and more, persistent_workers=True; where all cores are busy already, prepare each "
            "sample once and keep it"
        )
    return (
        f"{plural(workers, 'worker')} cannot keep up: more of them where preparing waits for something, a cache "
        "of prepared samples where it keeps the cores busy"
    )


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
