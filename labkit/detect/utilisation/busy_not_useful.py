"""Is the device busy without being useful?

Utilisation as the system shows it counts time in which something runs, not what it does: a loop that only moves memory
shows 100 %. Waiting for data does not: nothing runs then. A core that another program has at the moment is no idleness of
this one: time in which a thread was ready to run and waited for a core counts as busy.
"""

from __future__ import annotations

from ...record.quantity import Quantity, share
from ...record.schema import Record, Run
from ..catalogue import said
from ..verdict import Verdict, answering
from .measures import CEILING_TOO_LOW, busy_share, ceiling, declares_flops, queued_share, trains_nothing, utilisation

NAME = "busy-not-useful"
QUESTION = "Is the device busy without being useful?"
TIMED = True
_answer = answering(NAME, QUESTION)

BUSY, NOT_BUSY = 0.8, 0.6
"""Shares of the cores' time from which on the device is busy, and up to which it is not."""

LOADED = 0.1
"""Share of the cores' time spent ready to run and without a core, from which on other programs have a part in the run."""

BUSY_LOADED, NOT_BUSY_LOADED = 0.5, 0.2
"""The like beside other programs: threads that meet after each operation idle while one of them waits for a core."""

USELESS = 0.02


def detect(record: Record) -> Verdict:
    """Compare how busy the rank kept its cores with the arithmetic that its model needed."""
    run = record.run
    missing = _missing(record)
    if missing is not None:
        return _answer("not_applicable", missing)
    busy, queued, mfu = busy_share(run) or 0.0, queued_share(run) or 0.0, utilisation(record) or 0.0
    useful = mfu * (busy + queued) / busy if busy > 0 else mfu  # what it would be with the cores to itself
    evidence = {
        "busy_share": share(busy, "of the cores' time"),
        "mfu": share(mfu, "of the measured ceiling", why=CEILING_TOO_LOW),
    }
    if queued >= LOADED:
        evidence["queued_share"] = share(queued, "of the cores' time, waiting for a core")
    if useful >= USELESS:
        return _answer("clear", "busy-with-what-the-model-needs", evidence)
    return _useless(run, busy, queued, useful, evidence)


def _useless(run: Run, busy: float, queued: float, useful: float, evidence: dict[str, Quantity]) -> Verdict:
    """By whether a program that does next to no useful arithmetic keeps its cores busy all the same."""
    wanted = busy + queued
    kept, busy_from, idle_to = said("cores-busy", busy=busy), BUSY, NOT_BUSY
    if queued >= LOADED:
        kept = said("cores-busy-beside-others", busy=busy, wanted=wanted)
        busy_from, idle_to = BUSY_LOADED, NOT_BUSY_LOADED
    if wanted >= busy_from and trains_nothing(run):
        return _answer("found", "busy-training-nothing", evidence, kept=kept)
    if wanted >= busy_from:
        return _answer("found", "busy-doing-little", evidence, kept=kept, useful=useful)
    if wanted > idle_to:
        return _answer("inconclusive", "neither-busy-nor-idle", evidence, kept=kept)
    return _answer("clear", "idle-and-it-shows", evidence)


def _missing(record: Record) -> str | None:
    """The reason for no answer, by what the record lacks; None where it lacks nothing."""
    run = record.run
    lacks = (
        (busy_share(run) is None, "no-processor-time-recorded"),
        (not declares_flops(run), "no-flops-declared"),
        (ceiling(record) is None, "no-ceiling-measured"),
        (utilisation(record) is None, "no-tokens-declared"),
        (run.ranks[0].head.device != "cpu", "processor-time-of-a-gpu-run"),
    )
    return next((reason for lacking, reason in lacks if lacking), None)
