"""Does this precision cost time on this device?

Judged by steps that were timed in turn with fp32's, several times over. Faster in (nearly) all repeats, or slower, is an
answer; if the repeats disagree, noise hides it. What a datasheet says plays no part.
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record
from ...words import plural
from ..verdict import Verdict, answering, either
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
        return _answer("not_applicable", cause="this is fp32, with which others are compared", fix="run another variant")
    times = speed(run)
    if times is None:
        return _answer(
            "not_applicable",
            cause="no steps were timed beside fp32's",
            fix=either(
                lab=f"time them (--set repeats={max(9, ENOUGH)})",
                script="time a few steps in either precision by turns, nine times, each with probe.event('timed', repeat=…, "
                "loop='variant' or 'fp32', elapsed_ns=…, steps=…)",
            ),
        )
    low, high = times.interval
    ratio, repeats = float(np.median(times.ratios)), len(times.ratios)
    evidence = _evidence(record, times)
    if repeats < ENOUGH:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"too few to tell a difference from noise: {plural(repeats, 'repeat')}",
            fix=either(lab=f"time {ENOUGH} repeats or more (--set repeats=9)", script=f"time {ENOUGH} repeats or more"),
        )
    if low > 1 and ratio > 1 + SAME:
        return _answer(
            "found",
            evidence,
            cause=f"a step takes {ratio:.2f} times as long as in fp32 on this device: casting costs more than this model's "
            "products gain, or the device has no units for this precision",
            fix="use fp32 here, and measure again where the model or the device is another",
            where=str(run.fact("loop_where", "")) or None,
            waste=1 - 1 / ratio,
        )
    if high < 1 and ratio < 1 - SAME:
        return _answer(
            "clear", evidence, cause=f"a step takes {ratio:.2f} times as long as in fp32: {1 / ratio:.2f} times as fast"
        )
    if low > 1 - SAME and high < 1 + SAME:
        return _answer("clear", evidence, cause="a step takes as long as in fp32, within the noise and 5 %")
    return _answer(
        "inconclusive",
        evidence,
        cause=f"a step takes {low:.2f} to {high:.2f} times as long as in fp32 from one repeat to the next: noise hides what "
        "difference there is",
        fix=either(
            lab="stop what else runs on this machine, and time more steps (--set timed_steps=100)",
            script="stop what else runs on this machine, and time more steps",
        ),
    )


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
