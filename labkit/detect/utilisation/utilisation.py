"""How much of what this device can do goes into the model?

The share of the ceiling measured in the record, or by lab 00 on this machine, with attention counted in full. The bands are
those of practice: under 20 % something is wrong, over 30 % passes, over 45 % is tuned. What the spread of the steps leaves
open between two bands is inconclusive.
"""

from __future__ import annotations

from ...record.quantity import Quantity, share
from ...record.roles import Role
from ...record.schema import Record, Run
from ..runs import lane_shares
from ..under_load import hindered, uneven
from ..verdict import Verdict, answering
from .measures import (
    CEILING_TOO_LOW,
    Ceiling,
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

WAITING = 0.5
"""Share of a step spent fetching from which on waiting for data is the cause."""


def detect(record: Record) -> Verdict:
    """Judge the run under study against the ceiling and, where it was run, the tuned end of the ladder."""
    run = record.run
    if not declares_flops(run):
        return _answer("not_applicable", "no-flops-declared")
    best = ceiling(record)
    if best is None:
        return _answer("not_applicable", "no-ceiling-measured")
    value, spread = utilisation(record), utilisation_spread(record)
    if value is None and len(timed_steps(run)) >= 2:
        return _answer("not_applicable", "no-tokens-declared")
    if value is None or spread is None:
        return _answer("not_applicable", "too-few-timed-steps")
    waiting = lane_shares(run.ranks[0]).get("data", 0.0)
    evidence = _evidence(run, best, value, spread, waiting)
    if value > 1:
        return _answer("inconclusive", "faster-than-its-ceiling", evidence)
    (low, high), (too_high, too_low) = spread, _doubt(record)
    if low < WRONG <= high:
        return _answer("inconclusive", "steps-vary-around-the-bound", evidence, low=low, high=high, bound=WRONG)
    if low / too_high < WRONG <= high * too_low:
        return _answer("inconclusive", "steps-vary-with-other-programs", evidence, low=low, high=high)
    faster = _times_faster(record)
    if faster is not None:
        evidence["speed_of_tuned"] = Quantity(faster, "times this run's tokens/s")
    if value >= WRONG:
        return _beside_tuned(record, best, value, faster, waiting, evidence)
    return _too_low(record, value, waiting, evidence)


def _too_low(record: Record, value: float, waiting: float, evidence: dict[str, Quantity]) -> Verdict:
    waste = _waste(record)
    if trains_nothing(record.run):
        return _answer("found", "trains-nothing", evidence, waste=waste, mfu=value)
    if waiting > WAITING:
        return _answer("found", "waits-for-data", evidence, waste=waste, mfu=value, waiting=waiting)
    return _answer("found", "kernels-small-or-bound-by-memory", evidence, waste=waste, mfu=value)


def _beside_tuned(
    record: Record, best: Ceiling, value: float, faster: float | None, waiting: float, evidence: dict[str, Quantity]
) -> Verdict:
    if faster is not None and faster >= FASTER * uneven(record.run, record.runs[Role.TUNED]):
        slower = "slower-than-tuned-for-want-of-data" if waiting > WAITING else "slower-than-tuned"
        return _answer("found", slower, evidence, waste=_waste(record), mfu=value, faster=faster)
    if best.doubts:
        return _answer("inconclusive", "baseline-may-be-too-low", evidence, mfu=value, doubts=best.doubts)
    return _answer("clear", "utilisation-passes" if value >= PASSES else "utilisation-is-poor", evidence, mfu=value)


def _evidence(run: Run, best: Ceiling, value: float, spread: tuple[float, float], waiting: float) -> dict[str, Quantity]:
    low, high = spread
    evidence = {
        "mfu": share(value, "of the measured ceiling", why=CEILING_TOO_LOW),
        "ceiling": Quantity(best.flops_per_s / 1e9, f"GFLOP/s, {best.said}"),
        "mfu_slow_steps": share(low, "of the measured ceiling", why=CEILING_TOO_LOW),
        "mfu_fast_steps": share(high, "of the measured ceiling", why=CEILING_TOO_LOW),
        "data_share": Quantity(waiting, "of step time"),
    }
    busy = busy_share(run)
    return evidence if busy is None else evidence | {"busy_share": share(busy, "of the cores' time")}


def _doubt(record: Record) -> tuple[float, float]:
    """By what factors other programs may have made an MFU (too high, too low): they hinder its ceiling, or the run."""
    best = record.runs.get(Role.CEILING)
    return (1.0 if best is None else hindered(best)), hindered(record.run)


def _times_faster(record: Record) -> float | None:
    own = tokens_per_second(record.run)
    tuned = tokens_per_second(record.runs[Role.TUNED]) if Role.TUNED in record.runs else None
    return tuned / own if own and tuned else None


def _waste(record: Record) -> float | None:
    """The share of this run's time that the tuned end of the ladder does not need for the same tokens."""
    if Role.TUNED not in record.runs:
        return None
    faster = _times_faster(record)
    return 1.0 if faster is None else max(0.0, 1 - 1 / faster)
