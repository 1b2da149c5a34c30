"""What a crash did to a run, out of records: attempts, lost steps, saves, where the resumed run departs. No torch, no I/O.

What a program tells, each an event: `save` (of_step: steps that it holds; path; what; stall_s, write_s, bytes; alone: the
rank wrote all of it by itself; digest of what it wrote), `load` (of_step, 0 if nothing was there; load_s), `state` (when:
saved or resumed; of_step; a hash for each state by name), `save_failed`. Steps are numbered through, over all attempts
(`probe.resume_at`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...record.quantity import Quantity
from ...record.roles import Role
from ...record.schema import Event, RankLog, Record, Run, Step
from ..runs import weights_equal, weights_gap

REFERENCE = Role.UNINTERRUPTED
BEFORE = Role.BEFORE
"""The run that stopped, where another launch goes on from its checkpoints."""
_NO_STATE = ("when", "of_step")


@dataclass(frozen=True)
class Attempt:
    """What one attempt did.

    Attributes:
        logs: of those ranks that left one.
    """

    logs: tuple[RankLog, ...]

    @cached_property
    def first_step(self) -> int | None:
        """The step at which it began; None if no rank came so far.

        Where it was killed in its first step, before any rank had that step written, the planned fault tells.
        """
        begun = [log.steps[0].step for log in self.logs if log.steps]
        faults = [event for log in self.logs for event in log.events if event.name == "fault" and _kills(event)]
        return min(begun or [int(e.fields["at_step"]) for e in faults if e.fields.get("at", STEP) == STEP], default=None)

    @cached_property
    def steps_done(self) -> int:
        """Steps of the whole run that were done when it ended: those that every rank finished.

        A step that a rank was in when another died is written down as well, so the rank that came least far counts.
        """
        if self.first_step is None:
            return 0
        return min(log.steps[-1].step + 1 if log.steps else self.first_step for log in self.logs)

    @cached_property
    def ended_ns(self) -> int:
        """When it ended: at the first fault that killed, else when the last step or event was written."""
        killed = [e.time_ns for log in self.logs for e in log.events if e.name == "fault" and _kills(e)]
        return min(killed) if killed else self.last_ns

    @cached_property
    def last_ns(self) -> int:
        times = [step.end_ns for log in self.logs for step in log.steps[-1:]]
        times += [event.time_ns for log in self.logs for event in log.events[-1:]]
        return max(times, default=0)

    @cached_property
    def started_ns(self) -> int:
        """When its first step began; where none did, when its first line was written."""
        steps = [log.steps[0].start_ns for log in self.logs if log.steps]
        return min(steps or [event.time_ns for log in self.logs for event in log.events[:1]], default=0)

    def events(self, name: str) -> Iterator[tuple[int, Event]]:
        """(rank, event) of each event of a name."""
        for log in self.logs:
            for event in log.events:
                if event.name == name:
                    yield log.head.rank, event

    @cached_property
    def killed_ranks(self) -> list[int]:
        """Ranks on which a planned fault killed."""
        return sorted({rank for rank, event in self.events("fault") if _kills(event)})


STEP = "step"
"""The point of a fault that happens as a step begins."""


def _kills(event: Event) -> bool:
    return event.fields.get("fault") in ("kill", "lose-node")


def attempts(run: Run) -> list[Attempt]:
    """The attempts of a run, in order; those of which nothing is left are left out."""
    return [Attempt(logs) for logs in (*run.earlier, run.ranks) if logs]


def of_step(event: Event) -> int:
    """Steps that a save holds, or that a load found."""
    return int(event.fields.get("of_step", 0))


@dataclass(frozen=True)
class Crash:
    """An attempt's end and what followed.

    Attributes:
        done: steps done when it crashed.
        resumed_at: the step at which the next attempt began.
        newest_save: steps that the newest checkpoint held that was complete on every rank that tells; 0 without.
        crashed_ns, resumed_ns: when it crashed, and when the first step after it began.
    """

    done: int
    resumed_at: int
    newest_save: int
    crashed_ns: int
    resumed_ns: int

    @property
    def restart_s(self) -> float:
        """Seconds from the crash to the first step after it."""
        return (self.resumed_ns - self.crashed_ns) / 1e9

    @property
    def lost_steps(self) -> int:
        """Steps that had to be done again."""
        return max(0, self.done - self.resumed_at)


def crashes(run: Run) -> list[Crash]:
    """The crashes of a run. Attempts that ended before their first step belong to the restart that they were part of."""
    found, before, saved = [], None, 0
    for attempt in attempts(run):
        if attempt.first_step is not None:
            if before is not None:
                found.append(Crash(before.steps_done, attempt.first_step, saved, before.ended_ns, attempt.started_ns))
            before = attempt
        saved = max([saved, *_complete_saves(attempt)])
    return found


def _complete_saves(attempt: Attempt) -> list[int]:
    """Steps of checkpoints that every rank that saves says are complete."""
    by_step: dict[int, set[int]] = {}
    savers: set[int] = set()
    for rank, event in attempt.events("save"):
        by_step.setdefault(of_step(event), set()).add(rank)
        savers.add(rank)
    return [step for step, ranks in by_step.items() if ranks == savers]


@dataclass(frozen=True)
class Save:
    """A save as one rank saw it; times in seconds."""

    rank: int
    of_step: int
    what: str
    path: str
    stall_s: float
    write_s: float
    num_bytes: int
    alone: bool
    digest: str
    time_ns: int


def saves(run: Run) -> list[Save]:
    """All saves of all ranks and attempts, in order of attempts, then ranks."""
    return [
        Save(
            rank=rank,
            of_step=of_step(event),
            what=str(event.fields.get("what", "")),
            path=str(event.fields.get("path", "")),
            stall_s=float(event.fields.get("stall_s", 0.0)),
            write_s=float(event.fields.get("write_s", 0.0)),
            num_bytes=int(event.fields.get("bytes", 0)),
            alone=bool(event.fields.get("alone", False)),
            digest=str(event.fields.get("digest", "")),
            time_ns=event.time_ns,
        )
        for attempt in attempts(run)
        for rank, event in attempt.events("save")
    ]


def steps_that_count(run: Run) -> dict[int, dict[int, Step]]:
    """By rank, by step: each step as it was done last. What was done before a crash and again after it counts once."""
    found: dict[int, dict[int, Step]] = {}
    for attempt in attempts(run):
        for log in attempt.logs:
            found.setdefault(log.head.rank, {}).update({step.step: step for step in log.steps})
    return found


def losses(run: Run) -> dict[int, dict[int, float]]:
    """By rank, by step: the loss that counts."""
    return {
        rank: {number: step.scalar("loss_local") for number, step in steps.items() if "loss_local" in step.scalars}
        for rank, steps in steps_that_count(run).items()
    }


def global_losses(run: Run) -> dict[int, float]:
    """By step: the mean over the global batch, where every rank tells its part."""
    of_ranks = steps_that_count(run)
    common = set.intersection(*(set(steps) for steps in of_ranks.values())) if of_ranks else set()
    found = {}
    for number in sorted(common):
        steps = [steps[number] for steps in of_ranks.values()]
        if all("loss_local" in step.scalars for step in steps):
            sizes = [step.scalar("batch_samples") if "batch_samples" in step.scalars else 1.0 for step in steps]
            total = sum(step.scalar("loss_local") * size for step, size in zip(steps, sizes, strict=True))
            found[number] = total / max(sum(sizes), 1e-300)
    return found


def resumed_at(run: Run) -> int | None:
    """The step at which the last attempt began, if it did not begin the run."""
    first = attempts(run)[-1].first_step if attempts(run) else None
    return first if first and first > 0 else (0 if crashes(run) else None)


def first_difference(run: Run, reference: Run) -> int | None:
    """The first step at which the loss of any rank differs from the reference's by a bit; None if it never does."""
    own, other = losses(run), losses(reference)
    steps = sorted({step for rank in own if rank in other for step in set(own[rank]) & set(other[rank])})
    return next((s for s in steps if any(own[r].get(s) != other[r].get(s) for r in own if r in other and s in own[r])), None)


def largest_gap(run: Run, reference: Run) -> float | None:
    """The largest relative difference of the loss over the global batch, at any step that both have."""
    own, other = global_losses(run), global_losses(reference)
    gaps = [abs(own[step] - other[step]) / max(abs(other[step]), 1e-300) for step in own if step in other]
    return max(gaps) if gaps else None


def states_not_restored(run: Run) -> list[str] | None:
    """Names of the states that a resume did not bring back, on any rank; None where the program tells no hashes."""
    missing: dict[str, None] = {}
    compared = False
    saved: dict[tuple[int, int], dict] = {}
    for attempt in attempts(run):
        for rank, event in attempt.events("state"):
            key = (rank, of_step(event))
            if event.fields.get("when") == "saved":
                saved[key] = event.fields
            elif key in saved:
                compared = True
                names = [name for name in event.fields if name not in _NO_STATE]
                missing |= dict.fromkeys(n for n in names if event.fields[n] != saved[key].get(n))
    return list(missing) if compared else None


def shared_states_not_restored(before: Run, run: Run) -> list[str] | None:
    """Names of the states that all ranks of the run before saved as one, and that a rank which goes on does not have.

    What each rank has of its own, such as random numbers, is left out: another number of ranks cannot have it. None where
    the programs tell no hashes, or of no step in common.
    """
    saved: dict[int, list[dict]] = {}
    for attempt in attempts(before):
        for _, event in attempt.events("state"):
            if event.fields.get("when") == "saved":
                saved.setdefault(of_step(event), []).append(event.fields)
    resumed = [event for a in attempts(run) for _, event in a.events("state") if event.fields.get("when") == "resumed"]
    told = [(event.fields, saved[of_step(event)]) for event in resumed if of_step(event) in saved]
    if not told:
        return None
    missing = {
        name: None
        for has, ranks in told
        for name, value in ranks[0].items()
        if name not in _NO_STATE and all(fields.get(name) == value for fields in ranks) and has.get(name) != value
    }
    return list(missing)


def share_forgotten(run: Run, reference: Run, begun: int) -> float | None:
    """How far the loss of the resumed run lies behind the reference's, as a share of what that had learnt by then.

    The median over the first steps after the resume; 0 where nothing is lost, about 1 where the weights are new. None where
    the reference had not learnt more than its loss varies from step to step, so that the share says nothing.
    """
    own, other = global_losses(run), global_losses(reference)
    after = [step for step in sorted(own) if begun <= step < begun + FIRST_STEPS and step in other]
    done = [other[step] for step in sorted(other) if step < begun]
    if not after or len(done) < 2:
        return None
    learnt = done[0] - float(np.median(done[-FIRST_STEPS:]))
    if not learnt > 3 * float(np.median(np.abs(np.diff(done)))):
        return None
    return float(np.median([own[step] - other[step] for step in after])) / learnt


FIRST_STEPS = 5
"""Steps by whose median a jump of the loss is judged, so that one odd batch is none."""


@dataclass(frozen=True)
class TimeSplit:
    """Where the time went, from the first step to the last line, as shares that add up to 1; of one rank.

    Attributes:
        useful: steps that count: the goodput.
        lost: steps that were done again after a crash.
        saving: training waited for a checkpoint, between two steps.
        restarting: from a crash to the first step after it.
        between: the rest: between steps, in steps that a crash cut off.
    """

    useful: float
    lost: float
    saving: float
    restarting: float
    between: float


def time_split(run: Run) -> TimeSplit | None:
    """Where the time of the rank with the most useful work went; None where no rank came to a step."""
    found = [attempt for attempt in attempts(run) if attempt.first_step is not None]
    elapsed = attempts(run)[-1].last_ns - found[0].started_ns if found else 0
    if elapsed <= 0:
        return None
    counting = steps_that_count(run)
    useful = {rank: sum(step.end_ns - step.start_ns for step in steps.values()) for rank, steps in counting.items()}
    rank = max(useful, key=lambda rank: useful[rank])
    gaps = [(crash.crashed_ns, crash.resumed_ns) for crash in crashes(run)]
    lost = saving = 0
    for attempt in found:
        for log in attempt.logs:
            if log.head.rank == rank:
                again = [step for step in log.steps if counting[rank][step.step] is not step]
                lost += sum(_outside(step.start_ns, step.end_ns, gaps) for step in again)
                saving += _saving_ns(log, min(attempt.ended_ns, attempts(run)[-1].last_ns))
    restarting = sum(end - start for start, end in gaps)
    rest = elapsed - useful[rank] - lost - saving - restarting
    shares = [part / elapsed for part in (useful[rank], lost, saving, restarting, max(0, rest))]
    return TimeSplit(*shares)


def _outside(start: int, end: int, gaps: list[tuple[int, int]]) -> int:
    """How much of an interval lies outside of others, which do not overlap."""
    return end - start - sum(max(0, min(end, until) - max(start, since)) for since, until in gaps)


def _saving_ns(log: RankLog, ended_ns: int) -> int:
    """How long a rank's training waited for its saves, in the pauses after the steps that they hold."""
    stalls: dict[int, float] = {}
    for event in log.events:
        if event.name == "save":
            stalls[of_step(event)] = stalls.get(of_step(event), 0.0) + float(event.fields.get("stall_s", 0.0))
    next_starts = [step.start_ns for step in log.steps[1:]] + [ended_ns]
    pauses = ((step.step + 1, after - step.end_ns) for step, after in zip(log.steps, next_starts, strict=False))
    return sum(min(int(1e9 * stalls.get(done, 0.0)), max(0, pause)) for done, pause in pauses)


def goodput(run: Run) -> float | None:
    """Share of the time from the first step to the last that went into steps that count, on the rank that has most."""
    split = time_split(run)
    return split.useful if split is not None else None


def crash_measures(record: Record) -> dict[str, Quantity]:
    """The measures of a crash and of what followed, by name."""
    run, reference = record.run, record.runs.get(REFERENCE)
    found: dict[str, Quantity] = {"restarts": Quantity(run.attempts - 1)}
    happened = crashes(run)
    if happened:
        found["lost_steps"] = Quantity(sum(crash.lost_steps for crash in happened), "steps done again")
        found["restart_s"] = Quantity(
            float(np.mean([crash.restart_s for crash in happened])), "s, crash to next step", record.link_source
        )
    begun = resumed_at(run)
    if begun is not None:
        found["resumed_at"] = Quantity(begun, "steps done")
    saved = saves(run)
    if saved:
        found["saves"] = Quantity(len({(save.of_step, save.what) for save in saved}), "checkpoints")
        found["save_stall_ms"] = Quantity(1e3 * float(np.median([save.stall_s for save in saved])), "ms, training waits")
        found["save_write_ms"] = Quantity(1e3 * float(np.median([save.write_s for save in saved])), "ms, until complete")
        found["save_bytes"] = Quantity(max(save.num_bytes for save in saved), "bytes")
    failed = sum(1 for attempt in attempts(run) for _ in attempt.events("save_failed"))
    if failed:
        found["failed_saves"] = Quantity(failed, "reports")
    if reference is not None:
        found |= _against(run, reference)
    split = time_split(run)
    if split is not None:
        shares = {"goodput": split.useful, "time_lost": split.lost, "time_saving": split.saving}
        shares |= {"time_restarting": split.restarting, "time_between": split.between}
        found |= {name: Quantity(share, "of the time", record.link_source) for name, share in shares.items()}
    return found


def _against(run: Run, reference: Run) -> dict[str, Quantity]:
    found: dict[str, Quantity] = {}
    if run.world_size == reference.world_size:
        step = first_difference(run, reference)
        found["departs_at"] = Quantity("never" if step is None else f"step {step}")
        equal = weights_equal(run, reference)
        if equal is not None:
            found["weights_equal_uninterrupted"] = Quantity(equal)
    gap = largest_gap(run, reference)
    if gap is not None:
        found["loss_gap_largest"] = Quantity(gap, "relative")
    apart = weights_gap(run, reference)
    if apart is not None:
        found["weights_gap"] = Quantity(apart, "relative")
    return found
