"""Is the device busy without being useful?

Utilisation as the system shows it counts time in which something runs, not what it does: a loop that only moves memory
shows 100 %. Waiting for data does not: nothing runs then. A core that another program has at the moment is no idleness of
this one: time in which a thread was ready to run and waited for a core counts as busy.
"""

from __future__ import annotations

from ...record.quantity import share
from ...record.schema import Record
from ..verdict import Verdict, answering
from .measures import CEILING_TOO_LOW, busy_share, ceiling, declares_flops, queued_share, trains_nothing, utilisation
from .utilisation import DECLARE, MEASURE, NO_FLOPS, NO_TOKENS

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
    if missing:
        return _answer("not_applicable", cause=missing[0], fix=missing[1])
    busy, queued, mfu = busy_share(run) or 0.0, queued_share(run) or 0.0, utilisation(record) or 0.0
    wanted = busy + queued
    useful = mfu * wanted / busy if busy > 0 else mfu  # what it would be with the cores to itself
    evidence = {
        "busy_share": share(busy, "of the cores' time"),
        "mfu": share(mfu, "of the measured ceiling", why=CEILING_TOO_LOW),
    }
    if queued >= LOADED:
        evidence["queued_share"] = share(queued, "of the cores' time, waiting for a core")
    if useful >= USELESS:
        return _answer("clear", evidence, cause="the cores are busy with arithmetic that the model needs")
    busy_from, idle_to = (BUSY_LOADED, NOT_BUSY_LOADED) if queued >= LOADED else (BUSY, NOT_BUSY)
    kept = f"the program keeps the cores {busy:.0%} busy" + (
        f", and would keep them {wanted:.0%} busy without other programs" if queued >= LOADED else ""
    )
    if wanted >= busy_from:
        done = "trains nothing" if trains_nothing(run) else f"does {useful:.1%} of the arithmetic it could"
        return _answer(
            "found",
            evidence,
            cause=f"{kept}, and {done}: busy is not useful",
            fix="judge by MFU, not by utilisation; profile what runs",
        )
    if wanted > idle_to:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"{kept}: neither busy nor idle, and other work may have taken the rest",
            fix="run again on a quiet machine",
        )
    return _answer("clear", evidence, cause="the cores are not busy: nothing useful runs, and it shows")


def _missing(record: Record) -> tuple[str, str] | None:
    """What the record lacks for an answer, and what to do about it; None where it lacks nothing."""
    run = record.run
    lacks = (
        (busy_share(run) is None, "the program did not record its processor time", "record the scalar cpu_s"),
        (not declares_flops(run), NO_FLOPS, DECLARE),
        (ceiling(record) is None, "the record holds no measured ceiling", MEASURE),
        (utilisation(record) is None, NO_TOKENS, DECLARE),
        (
            run.ranks[0].head.device != "cpu",
            "the processor's time says nothing of a GPU",
            "read the device's own counters",
        ),
    )
    return next(((cause, fix) for lacking, cause, fix in lacks if lacking), None)
