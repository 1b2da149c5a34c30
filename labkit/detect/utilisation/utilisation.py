"""How much of what this device can do goes into the model?

The share of the ceiling measured in the record, or by lab 00 on this machine, with attention counted in full. The bands are
those of practice: under 20 % something is wrong, over 30 % passes, over 45 % is tuned. What the spread of the steps leaves
open between two bands is inconclusive.
"""

from __future__ import annotations

from ...record.quantity import Quantity, share
from ...record.schema import Record
from ..runs import lane_shares
from ..under_load import hindered, uneven
from ..verdict import Verdict, answering, either
from .measures import (
    CEILING_TOO_LOW,
    busy_share,
    ceiling,
    declares_flops,
    timed_steps,
    tokens_per_second,
    trains_nothing,
    utilisation,
    utilisation_spread,
)

NAME = "utilisation"
QUESTION = "Does the device do useful arithmetic most of the time?"
TIMED = True
_answer = answering(NAME, QUESTION)

WRONG, PASSES = 0.20, 0.30
FASTER = 1.5
"""A tuned run this many times as fast is a finding, whatever the band: more than steps vary on a noisy machine."""

NO_FLOPS = "the program did not say what arithmetic a step needs"
NO_TOKENS = "the program did not say how many tokens a step trains"
MEASURE = "run the lab, which measures one, or labkit bench, whose baseline is kept with every later run"
DECLARE = "probe.declare(matmul_params=, layers=, hidden=, seq=, precision=), and probe.scalar('tokens', n) each step"

AGAIN = "run more steps on a quiet machine"

WAITING = 0.5
"""Share of a step spent fetching from which on waiting for data is the cause."""


def detect(record: Record) -> Verdict:
    """Judge the run under study against the ceiling and, where it was run, the tuned end of the ladder."""
    run = record.run
    if not declares_flops(run):
        return _answer("not_applicable", cause=NO_FLOPS, fix=DECLARE)
    best = ceiling(record)
    if best is None:
        return _answer(
            "not_applicable",
            cause="the record holds no measured ceiling",
            fix=MEASURE,
        )
    value, spread = utilisation(record), utilisation_spread(record)
    if value is None and len(timed_steps(run)) >= 2:
        return _answer("not_applicable", cause=NO_TOKENS, fix=DECLARE)
    if value is None or spread is None:
        return _answer(
            "not_applicable",
            cause="the run has fewer than 2 timed steps",
            fix=either(lab="run more steps (--steps 6)", script="run more steps"),
        )
    low, high = spread
    waiting = lane_shares(run.ranks[0]).get("data", 0.0)
    evidence = {
        "mfu": share(value, "of the measured ceiling", why=CEILING_TOO_LOW),
        "ceiling": Quantity(best.flops_per_s / 1e9, f"GFLOP/s, {best.said}"),
        "mfu_slow_steps": share(low, "of the measured ceiling", why=CEILING_TOO_LOW),
        "mfu_fast_steps": share(high, "of the measured ceiling", why=CEILING_TOO_LOW),
        "data_share": Quantity(waiting, "of step time"),
    }
    busy = busy_share(run)
    if busy is not None:
        evidence["busy_share"] = share(busy, "of the cores' time")
    if value > 1:
        return _answer("inconclusive", evidence, cause=f"the run is faster than its ceiling: {CEILING_TOO_LOW}", fix=AGAIN)
    too_high, too_low = _doubt(record)
    if low / too_high < WRONG <= high * too_low:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"steps vary: from {low:.0%} to {high:.0%} of the ceiling, "
            + (f"on both sides of {WRONG:.0%}" if low < WRONG <= high else "by what other programs left to them"),
            fix=AGAIN,
        )
    faster = _times_faster(record)
    if faster is not None:
        evidence["speed_of_tuned"] = Quantity(faster, "times this run's tokens/s")
    if value >= WRONG and (faster or 0.0) >= FASTER * (uneven(run, record.runs["tuned"]) if faster else 1.0):
        return _answer(
            "found",
            evidence,
            cause=f"{value:.0%} of what this device can do; the tuned end of the ladder is {faster:.1f} times as fast",
            fix=_why(waiting, False)[1],
            waste=_waste(record),
        )
    if value >= WRONG and best.doubts:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"{value:.0%} of the baseline's best product, which may be too low: {', and '.join(best.doubts)}",
            fix="end what else runs on this machine, then: labkit bench --refresh, and run again",
        )
    if value >= WRONG:
        word = "passes" if value >= PASSES else "is poor but not a fault by itself"
        return _answer("clear", evidence, cause=f"{value:.0%} of what this device was seen to do {word}")
    cause, fix = _why(waiting, trains_nothing(run))
    return _answer(
        "found", evidence, cause=f"{value:.1%} of what this device was seen to do: {cause}", fix=fix, waste=_waste(record)
    )


def _doubt(record: Record) -> tuple[float, float]:
    """By what factors other programs may have made an MFU (too high, too low): they hinder its ceiling, or the run."""
    best = record.runs.get("ceiling")
    return (1.0 if best is None else hindered(best)), hindered(record.run)


def _why(waiting: float, nothing_trained: bool) -> tuple[str, str]:
    if nothing_trained:
        return "no step updates a weight", "find what keeps the device busy; it is not the model"
    if waiting > WAITING:
        return (
            f"{waiting:.0%} of a step is spent waiting for data",
            either(
                lab="replace the loader by one ready batch (--set data=dummy): if the rate jumps, feed the device faster",
                script="replace the loader by one ready batch: if the rate jumps, feed the device faster",
            ),
        )
    return (
        "the kernels are too small or move too much memory",
        "larger batch, fused attention, one change at a time, watching MFU",
    )


def _times_faster(record: Record) -> float | None:
    own = tokens_per_second(record.run)
    tuned = tokens_per_second(record.runs["tuned"]) if "tuned" in record.runs else None
    return tuned / own if own and tuned else None


def _waste(record: Record) -> float | None:
    """The share of this run's time that the tuned end of the ladder does not need for the same tokens."""
    if "tuned" not in record.runs:
        return None
    faster = _times_faster(record)
    return 1.0 if faster is None else max(0.0, 1 - 1 / faster)
