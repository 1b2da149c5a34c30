"""How a run differs from one before it, in sentences: settings, answers, times, losses, measures. Pure; no torch, no I/O.

Times are compared with care. Two medians are called different only where the intervals that they lie in are apart, and no
other program took the cores in either run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import LabkitError
from ..record.quantity import Quantity
from ..record.schema import Record
from ..words import duration, plural, short
from .loss import loss_curve, smoothed
from .meanings import meaning_of
from .runs import steps_together
from .spread import median_interval
from .verdict import Verdicts

FEWEST_STEPS = 6
"""In which a time has a median worth a word."""
NEAR = 0.05
"""Estimates that differ by less than this share of the larger are not told apart."""
MOST_MEASURES = 12


@dataclass(frozen=True)
class Side:
    """One of two runs that are compared.

    Attributes:
        record: what was recorded.
        measures: by name.
        main: the names of those that a person reads first; all if empty.
        exact: the names of those that come out equal on every machine: of them any difference counts.
        verdicts: the answers to the lab's questions.
    """

    record: Record
    measures: dict[str, Quantity]
    main: Sequence[str]
    exact: Sequence[str]
    verdicts: Verdicts


def differences(before: Side, now: Side) -> list[str]:
    """What differs, a sentence each, the most telling first; at least one sentence, also where nothing does."""
    found = [*_settings(before, now), *_answers(before, now), *_times(before, now), *_losses(before, now)]
    found += _measures(before, now)
    return found or ["Nothing that was measured differs between these two runs."]


def _settings(before: Side, now: Side) -> Iterator[str]:
    own, other = (_facts(side.record) for side in (now, before))
    moved = [name for name in own if own[name] != other.get(name, own[name])]
    if moved:
        listed = ", ".join(f"{name.replace('_', ' ')} {own[name]} (before: {other[name]})" for name in moved)
        yield f"Set differently: {listed}."
    else:
        yield "Both runs have the same settings."


def _facts(record: Record) -> dict[str, Any]:
    provenance = record.provenance
    return {"variant": record.variant, "ranks": record.run.world_size, "seed": provenance.seed} | {
        name: value for name, value in record.config.items() if value is not None
    }


def _answers(before: Side, now: Side) -> Iterator[str]:
    earlier = {verdict.detector: verdict for verdict in before.verdicts}
    for verdict in now.verdicts:
        other = earlier.get(verdict.detector)
        if other is None or {verdict.status, other.status} <= {"not_applicable", verdict.status} or verdict == other:
            continue
        if verdict.status != other.status:
            yield f"{verdict.question} Now: {_said(verdict.status)}. Before: {_said(other.status)}."


def _said(status: str) -> str:
    return status.replace("_", " ")


def step_seconds(record: Record) -> np.ndarray:
    """[steps]: what each step but the first took, on the slowest rank."""
    together = steps_together(record.run)
    fewest = min((len(steps) for steps in together), default=0)
    times = [[(step.end_ns - step.start_ns) / 1e9 for step in steps[1:fewest]] for steps in together]
    return np.max(np.array(times, np.float64), axis=0) if times and fewest > 1 else np.empty(0)


def _times(before: Side, now: Side) -> Iterator[str]:
    own, other = step_seconds(now.record), step_seconds(before.record)
    if min(len(own), len(other)) < FEWEST_STEPS:
        return
    said, was = (duration(float(np.median(times))) for times in (own, other))
    (low, high), (low_before, high_before) = median_interval(own), median_interval(other)
    middle, middle_before = float(np.median(own)), float(np.median(other))
    apart = low > high_before or high < low_before
    far = abs(middle - middle_before) > NEAR * max(middle, middle_before)
    busy = [side for side in (before, now) if any(run.load and run.load.heavy for run in side.record.runs.values())]
    if busy:
        yield (
            f"A step takes {said} where it took {was}, but other programs used the cores meanwhile: run both again on a "
            "quiet machine to compare times."
        )
    elif apart and far:
        change = (middle - middle_before) / middle_before
        more = (
            f"{abs(change):.0%} {'more' if change > 0 else 'less'}" if abs(change) < 2 else f"{1 + change:.1f} times as long"
        )
        yield f"A step takes {said} where it took {was} ({more}; medians, {_source(before, now)})."
    else:
        yield f"A step takes {said}, and took {was}: the runs' own steps vary by more than that."


def _source(before: Side, now: Side) -> str:
    sources = [side.record.link_source or side.record.provenance.source for side in (before, now)]
    return f"{sources[0]} in both" if sources[0] == sources[1] else f"{sources[0]} before, {sources[1]} now"


def _losses(before: Side, now: Side) -> Iterator[str]:
    try:
        own, other = (smoothed(loss_curve(side.record.run).loss_global) for side in (now, before))
    except (LabkitError, ValueError, IndexError):
        return  # one of them recorded no loss
    if not len(own) or not len(other):
        return
    at = min(len(own), len(other)) - 1
    said, was = (_loss(float(values[at])) for values in (own, other))
    where = f"after {plural(at + 1, 'step')}"
    yield f"The loss is {said} {where} in both runs." if said == was else f"The loss is {said} where it was {was}, {where}."


def _loss(value: float) -> str:
    return short(value) if math.isfinite(value) else "not a number" if math.isnan(value) else "infinite"


def _measures(before: Side, now: Side) -> Iterator[str]:
    exact, same = {*now.exact, *before.exact}, []
    names = [name for name in now.main or now.measures if name in now.measures and name in before.measures]
    told = 0
    for name in names:
        own, other = now.measures[name], before.measures[name]
        if not _differ(own, other, name in exact):
            same.append(name.replace("_", " "))
        elif told < MOST_MEASURES:
            told += 1
            meaning = meaning_of(name)
            yield f"{name.replace('_', ' ').capitalize()}: {own.said} where it was {other.said}" + (
                f" ({meaning})." if meaning else "."
            )
    if same:
        yield f"No difference to see in: {', '.join(same)}."


def _differ(own: Quantity, other: Quantity, exact: bool) -> bool:
    """Whether two measures differ by more than their noise."""
    numbers = [one.value for one in (own, other) if isinstance(one.value, (int, float)) and not isinstance(one.value, bool)]
    if len(numbers) < 2 or exact or own.unit != other.unit or all(isinstance(number, int) for number in numbers):
        return (own.value, own.unit) != (other.value, other.unit)
    gap, room = abs(numbers[0] - numbers[1]), (own.spread or 0.0) + (other.spread or 0.0)
    return gap > max(room, NEAR * max(map(abs, numbers)))
