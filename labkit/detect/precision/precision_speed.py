"""Does this precision cost time on this device?

Judged by steps that were timed in turn with fp32's, several times over. Faster in (nearly) all repeats, or slower, is an
answer; if the repeats disagree, noise hides it. What a datasheet says plays no part.
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..verdict import Verdict, answering
from .measures import Speed, speed

NAME = "precision-speed"
QUESTION = "Is a step slower than in fp32 here?"
TIMED = True
_answer = answering(NAME, QUESTION)

ENOUGH = 6
"""Repeats that must agree: by chance alone, 6 do in 1 of 32 cases."""

SAME = 0.05
"""Differences that are not worth a word, either way."""


def detect(record: Record) -> Verdict:
    """Judge the repeats that the run under study timed."""
    run = record.run
    if run.fact("precision") == "fp32":
        return _answer("not_applicable", "is-fp32-itself")
    times = speed(run)
    if times is None:
        return _answer("not_applicable", "not-timed-beside-fp32")
    return _judge(run, times, _evidence(record, times))


def _judge(run: Run, times: Speed, evidence: dict[str, Quantity]) -> Verdict:
    low, high = times.interval
    ratio, repeats = float(np.median(times.ratios)), len(times.ratios)
    if repeats < ENOUGH:
        return _answer("inconclusive", "too-few-repeats-beside-fp32", evidence, repeats=repeats, enough=ENOUGH)
    if low > 1 and ratio > 1 + SAME:
        where = str(run.fact("loop_where", "")) or None
        return _answer("found", "slower-than-fp32", evidence, where=where, waste=1 - 1 / ratio, ratio=ratio)
    if high < 1 and ratio < 1 - SAME:
        return _answer("clear", "faster-than-fp32", evidence, ratio=ratio, speed=1 / ratio)
    if low > 1 - SAME and high < 1 + SAME:
        return _answer("clear", "as-fast-as-fp32", evidence, within=SAME)
    return _answer("inconclusive", "speed-hidden-by-noise", evidence, low=low, high=high)


def _evidence(record: Record, times: Speed) -> dict[str, Quantity]:
    low, high = times.interval
    return {
        "step_time": Quantity(float(np.median(times.own_s)) * 1e3, "ms"),
        "step_time_fp32": Quantity(float(np.median(times.fp32_s)) * 1e3, "ms"),
        "ratio": Quantity(float(np.median(times.ratios)), "x fp32's time"),
        "ratio_low": Quantity(low, "x"),
        "ratio_high": Quantity(high, "x"),
        "repeats": Quantity(len(times.ratios), f"of {_steps(record)} steps"),
    }


def _steps(record: Record) -> object:
    return next((event.fields["steps"] for event in record.run.ranks[0].events if event.name == "timed"), "?")
