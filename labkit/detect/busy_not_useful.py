"""Is the device busy without being useful?

Utilisation as the system shows it counts time in which something runs, not what it does: a loop that only moves memory
shows 100 %. Waiting for data does not: nothing runs then.
"""

from __future__ import annotations

from ..record.measures import Quantity
from ..record.measures_mfu import busy_share, ceiling, declares_flops, utilisation
from ..record.schema import Record
from .utilisation import DECLARE, MEASURE, NO_FLOPS
from .verdict import Verdict, answering

NAME = "busy-not-useful"
QUESTION = "Is the device busy without being useful?"
_answer = answering(NAME, QUESTION)

BUSY = 0.8
USELESS = 0.02
NOT_BUSY = 0.6


def detect(record: Record) -> Verdict:
    """Compare how busy the rank kept its cores with the arithmetic that it did."""
    run = record.run
    busy = busy_share(run)
    if busy is None:
        return _answer(
            "not_applicable", cause="the program did not record its processor time", fix="record the scalar cpu_s"
        )
    if not declares_flops(run):
        return _answer("not_applicable", cause=NO_FLOPS, fix=DECLARE)
    if ceiling(record) is None:
        return _answer("not_applicable", cause="the record holds no measured ceiling", fix=MEASURE)
    useful = utilisation(record) or 0.0
    evidence = {
        "busy_share": Quantity(busy, "of the cores' time"),
        "mfu": Quantity(useful, "of the measured ceiling"),
    }
    if run.ranks[0].head.device != "cpu":
        return _answer(
            "not_applicable",
            evidence,
            cause="the processor's time says nothing of a GPU",
            fix="read the device's own counters",
        )
    if useful < USELESS and busy >= BUSY:
        return _answer(
            "found",
            evidence,
            cause=f"the cores are {busy:.0%} busy and do {useful:.1%} of the arithmetic they could: busy is not useful",
            fix="judge by MFU, not by utilisation; profile what runs",
        )
    if useful < USELESS and busy > NOT_BUSY:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"the cores are {busy:.0%} busy: other work may have taken the rest",
            fix="run again on a quiet machine",
        )
    said = "not busy: nothing useful runs, and it shows" if useful < USELESS else "busy with arithmetic that the model needs"
    return _answer("clear", evidence, cause=f"the cores are {said}")
