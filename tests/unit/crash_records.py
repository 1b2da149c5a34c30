"""Records of runs that crash, made of plain numbers: what each attempt did, saved and found."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from labkit.record.schema import Event, RankLog, Record, Run, Step

from .builders import head, record_of

STEP_NS = 10_000_000
"""A step takes 10 ms."""

RESTART_NS = 500_000_000


@dataclass
class Attempt:
    """One attempt.

    Attributes:
        begins: at which step.
        done: steps done when it ended.
        saves: after which steps a checkpoint was complete.
        found: steps of the checkpoint that it found; None tells nothing.
        killed: rank that was killed at its end.
        loss: from (rank, step) to a loss.
    """

    begins: int
    done: int
    saves: tuple[int, ...] = ()
    found: int | None = None
    killed: int | None = 0
    loss: object = field(default=lambda rank, step: 2.0 / (1 + step))
    stall_s: float = 0.004
    paths: tuple[str, ...] = ("shared", "shared")
    alone: bool = False
    digests: tuple[str, ...] = ("", "")
    states: dict = field(default_factory=dict)
    resumed_states: dict | None = None
    fault: str = "kill"
    had: tuple[int, ...] | None = None


def run_of_attempts(*tried: Attempt, ranks: int = 2, role: str = "variant", weights: str = "w", **facts) -> Run:
    """A run of these attempts, one after the other on the clock."""
    clock, logs = 0, []
    for number, attempt in enumerate(tried):
        logs.append(tuple(_log(attempt, rank, ranks, number, clock, facts) for rank in range(ranks)))
        clock += (attempt.done - attempt.begins) * STEP_NS + RESTART_NS
    last = tuple(msgspec.structs.replace(log, finished=True, digests={"weights": weights}) for log in logs[-1])
    return Run(role, last, 1.0, attempts=len(tried), earlier=tuple(logs[:-1]))


def _log(attempt: Attempt, rank: int, ranks: int, number: int, clock: int, facts: dict) -> RankLog:
    steps, events = [], []
    if attempt.found is not None:
        more = {} if attempt.had is None else {"had": attempt.had[rank]}
        told = {"digest": attempt.digests[0]} if attempt.digests[0] else {}
        events.append(Event("load", -1, clock, {"of_step": attempt.found, "load_s": 0.01, **more, **told}))
    if attempt.resumed_states is not None:
        events.append(Event("state", -1, clock, {"when": "resumed", "of_step": attempt.begins, **attempt.resumed_states}))
    for step in range(attempt.begins, attempt.done):
        start = clock + (step - attempt.begins) * STEP_NS
        scalars = {"loss_local": attempt.loss(rank, step), "batch_samples": 8.0}
        steps.append(Step(step, 0, start, start + STEP_NS, scalars=scalars))
        if step + 1 in attempt.saves:
            fields = {"of_step": step + 1, "what": "full", "path": attempt.paths[rank], "stall_s": attempt.stall_s,
                      "write_s": attempt.stall_s, "bytes": 1000, "alone": attempt.alone}  # fmt: skip
            fields |= {"digest": attempt.digests[rank]} if attempt.digests[rank] else {}
            if attempt.states:
                events.append(Event("state", step, start, {"when": "saved", "of_step": step + 1, **attempt.states}))
            events.append(Event("save", step, start + STEP_NS, fields))
    if attempt.killed == rank:
        end = clock + (attempt.done - attempt.begins) * STEP_NS
        events.append(Event("fault", attempt.done, end, {"fault": attempt.fault, "at_step": attempt.done}))
    one = msgspec.structs.replace(head(rank, ranks, **facts), attempt=number)
    return RankLog(one, tuple(steps), tuple(events))


def uninterrupted(steps: int = 20, *, ranks: int = 2, loss=None, weights: str = "w") -> Run:
    given = {"loss": loss} if loss else {}
    return run_of_attempts(Attempt(0, steps, killed=None, **given), ranks=ranks, role="uninterrupted", weights=weights)


def crash_record(run: Run, reference: Run | None = None, **config) -> Record:
    others = {"uninterrupted": reference} if reference is not None else {}
    record = record_of(run, **others)
    return msgspec.structs.replace(record, lab="crash-recovery", config=config)


def saved_and_resumed(**how) -> Run:
    """Killed at step 13; saved after 5 and 10; goes on from 10 to 20."""
    return run_of_attempts(Attempt(0, 13, saves=(5, 10), found=0, **how),
                           Attempt(10, 20, saves=(15, 20), found=10, killed=None, **how))  # fmt: skip
