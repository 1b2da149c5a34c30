"""Judging and measuring does no more for each step, rank and epoch of a long run than for those of a short one.

Calls are counted, not seconds: the same on every machine.
"""

import contextlib
import functools
import gc
import itertools
import sys
from collections.abc import Callable

import msgspec
import pytest

from labkit import detect, labs
from labkit.errors import LabkitError
from labkit.record.blame import understood
from labkit.record.schema import Lane, Record, Run, Span, Step

from ..builders import in_batches, record_of, run_of, shares, shuffled

TIMES = 3
MOST = 1.3
"""A step of the longer run may take so many times the calls of one of the shorter run."""


def fresh(run: Run) -> Run:
    """The same run, of which nothing is known yet."""
    return msgspec.structs.replace(run, ranks=tuple(msgspec.structs.replace(log) for log in run.ranks))


@functools.cache
def long_run(*, ranks: int = 2, epochs: int = 3, steps: int = 8, batch: int = 4) -> Run:
    """A run with samples, times of all lanes, losses, counts of a watched DDP module, saves and a validation."""
    size = ranks * steps * batch
    reading = [[in_batches(share, batch) for share in shares(shuffled(size, epoch), ranks)] for epoch in range(epochs)]
    run = run_of(reading, dataset_size=size, batch_size=batch, validation=[[size + r] for r in range(ranks)])
    logs = [
        msgspec.structs.replace(log, steps=tuple(worked(step, log.head.rank) for step in log.steps)) for log in run.ranks
    ]
    return msgspec.structs.replace(run, ranks=tuple(logs))


def worked(step: Step, rank: int) -> Step:
    start = 1_000_000 * step.step + 1000 * rank
    cuts = [start + 100_000 * part for part in range(6)]
    lanes: tuple[tuple[str, Lane], ...] = (
        ("fetch", "data"),
        ("forward", "compute"),
        ("backward", "compute"),
        ("all_reduce", "comm"),
        ("step", "compute"),
    )
    spans = [Span(name, lane, a, b) for (name, lane), (a, b) in zip(lanes, itertools.pairwise(cuts), strict=True)]
    return msgspec.structs.replace(
        step,
        start_ns=cuts[0],
        end_ns=cuts[-1],
        spans=spans,
        scalars={"loss_local": 1 / (1 + step.step), "batch_samples": 4.0, "grad_norm": 1.0},
        counts={"backwards": 1, "reductions": 1, "optimizer_steps": 1, "tokens": 8},
        series={"bucket_pass": [0], "bucket_bytes": [8], "bucket_params": [2], "bucket_ready_ns": [cuts[3]],
                "bucket_end_ns": [cuts[4]], "backward_start_ns": [cuts[2]], "backward_computed_ns": [cuts[3]],
                "backward_end_ns": [cuts[4]]},
    )  # fmt: skip


def calls(ask: Callable[[Record], object], **shape: int) -> int:
    """How many calls, of Python's functions and of others, a question of a run takes."""
    record, count = record_of(fresh(long_run(**shape)), single=fresh(long_run())), 0

    def counting(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    gc.disable()  # what a collection calls is no part of the question
    sys.setprofile(counting)
    try:
        with contextlib.suppress(LabkitError), understood(record):
            ask(record)
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


QUESTIONS = {
    **{name: detect.detector(name) for name in detect.names()},
    **{f"measures of {spec.slug}": spec.measures for spec in labs.specs()},
}


@pytest.mark.parametrize("grows", ["steps", "ranks", "epochs", "batch"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_what_a_question_takes_grows_no_faster_than_the_run(question, grows):
    short = {"ranks": 4, "epochs": 4, "steps": 16, "batch": 4}[grows]
    calls(QUESTIONS[question])  # what is imported and looked up once
    base, longer, longest = (calls(QUESTIONS[question], **{grows: short * times}) for times in (1, TIMES, 2 * TIMES))
    grown = (longest - longer) / TIMES, (longer - base) / (TIMES - 1)  # for each `short` more, once it is long, and before
    assert grown[0] <= MOST * grown[1] + 0.02 * base


def test_a_question_that_looks_at_every_pair_of_steps_is_seen():
    def pairs(record: Record) -> int:
        steps = record.run.ranks[0].steps
        return sum(len(one.spans) == len(other.spans) for one in steps for other in steps)

    base, longer, longest = (calls(pairs, steps=8 * times) for times in (1, TIMES, 2 * TIMES))
    assert (longest - longer) / TIMES > MOST * (longer - base) / (TIMES - 1) + 0.02 * base
