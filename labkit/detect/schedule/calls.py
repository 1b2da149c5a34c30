"""How schedulers were stepped, held against how long they are made to last. Pure; no torch, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Run
from ..verdict import Verdict

NEAR = 0.1
"""Relative difference within which a schedule's length is the number of updates, but for a dropped tail."""

OFTEN, SELDOM = 1.2, 0.5
"""Steps of a scheduler by its length: above the one it goes on past its end, below the other it hardly begins."""

ENOUGH = 10
"""Updates before a scheduler is said to be left out."""

FAR = 0.2
"""Of its largest value: a learning rate above it at the end of the run is far from the end of its schedule."""

ASTRAY = 2
"""Calls of a scheduler that has been seen to move the rate of an optimizer that makes no update."""

APART = 1e-4
"""Relative difference of a metric between ranks that is no rounding."""

Answer = Callable[..., Verdict]


def of_calls(
    run: Run, rates: np.ndarray, where: str | None, evidence: dict[str, Quantity], answer: Answer
) -> Verdict | None:
    """Where a scheduler was stepped too often, too seldom, never, or too early; None where nothing of that is seen."""
    for end in (event.fields for event in run.ranks[0].events if event.name == "scheduler_end"):
        calls, length, updates = int(end["calls"]), int(end["length"]), int(end["updates"])
        known = evidence | {"length": Quantity(length, "steps of the schedule"), "calls": Quantity(calls)}
        told: dict[str, Any] = {"calls": calls, "length": length, "updates": updates, "scheduler": str(end["scheduler"])}
        if not calls:
            found = _never(run, end, updates)
            if found:
                return answer(found[0], found[1], known, where=str(end["where"]) or None, **told)
            continue
        reason = _of_length(run, end, calls, length, updates)
        if reason is not None:
            return answer("found", reason, known, where=where, **told)
        longer = _longer_than_the_run(run, end, rates)
        if longer is not None:
            times = "passes" if longer[0] == "found" else "ranks"
            return answer(*longer[:2], known | {times: Quantity(longer[2])}, where=where, factor=longer[2], **told)
        if _too_early(run, end):
            return answer("found", "scheduler-before-optimizer", known, where=where, **told)
    return None


def of_astray(run: Run, rates: np.ndarray, evidence: dict[str, Quantity], answer: Answer) -> Verdict | None:
    """Where a scheduler moves the rate of an optimizer that makes no update, and the one that makes them keeps its rate."""
    if len(rates) < ENOUGH or np.ptp(rates):
        return None
    for event in run.ranks[0].events:
        if event.name != "scheduler_astray" or int(event.fields["calls"]) < ASTRAY:
            continue
        first, last = float(event.fields["first"]), float(event.fields["last"])
        if first != last:
            told = {"scheduler": str(event.fields["scheduler"]), "first": first, "last": last, "rate": float(rates[0])}
            where = str(event.fields["where"]) or None
            return answer("found", "scheduler-of-another-optimizer", evidence, where=where, **told)
    return None


def of_unread(run: Run, rates: np.ndarray, evidence: dict[str, Quantity], answer: Answer) -> Verdict | None:
    """Where the script moves a number that no step of the optimizer reads, and the learning rate keeps its value."""
    event = next((event for event in run.ranks[0].events if event.name == "lr_beside"), None)
    if event is None or len(rates) < ENOUGH or np.ptp(rates):
        return None
    told: dict[str, Any] = {"name": str(event.fields["what"]), "rate": float(rates[0])}
    told |= {name: float(event.fields[name]) for name in ("first", "last")}
    return answer("found", "learning-rate-written-beside", evidence, where=str(event.fields["where"]) or None, **told)


def _never(run: Run, end: Mapping[str, Any], updates: int) -> tuple[str, str] | None:
    if updates < ENOUGH or not run.ranks[0].finished:
        return None
    if end["cut"] or end["scheduler"] == "ReduceLROnPlateau":
        return "inconclusive", "scheduler-not-stepped-so-far"
    return "found", "scheduler-never-stepped"


def _of_length(run: Run, end: Mapping[str, Any], calls: int, length: int, updates: int) -> str | None:
    """Which of the two units, updates or epochs, a schedule was made for, and which it was stepped by."""
    if not length or updates < ENOUGH or end["scheduler"] == "ReduceLROnPlateau":
        return None
    for_updates = abs(updates - length) <= max(1.0, NEAR * length)
    if for_updates and calls >= OFTEN * length:
        return "scheduler-stepped-too-often"
    if for_updates and calls <= SELDOM * length and not end["cut"] and run.ranks[0].finished:
        return "scheduler-stepped-too-seldom"
    epochs = len({step.epoch for step in run.ranks[0].steps})
    if epochs > 1 and length == epochs and calls >= 5 * length and abs(calls - updates) <= max(1.0, NEAR * updates):
        return "epochs-schedule-stepped-by-updates"
    return None


def _longer_than_the_run(run: Run, end: Mapping[str, Any], rates: np.ndarray) -> tuple[str, str, int] | None:
    """(status, reason, factor) where a schedule that each update advances is made for as many steps as there are
    micro-batches, or as all ranks make together. Who stops early or means half a cosine may come to the second by chance."""
    length, calls, updates = int(end["length"]), int(end["calls"]), int(end["updates"])
    by_updates = abs(calls - updates) <= max(1.0, NEAR * updates) and updates >= ENOUGH
    whole = run.ranks[0].finished and not end["cut"] and not end["given"]
    if not (by_updates and whole and length and len(rates) and rates[-1] > FAR * rates.max()):
        return None
    passes, epochs = _passes(run, updates), len({step.epoch for step in run.ranks[0].steps})
    if passes > 1 and _is_times(length, passes, updates, epochs):
        return "found", "schedule-made-for-micro-batches", passes
    if run.world_size > 1 and _is_times(length, run.world_size, updates, epochs):
        return "inconclusive", "schedule-made-for-one-rank", run.world_size
    return None


def _is_times(length: int, factor: int, updates: int, epochs: int) -> bool:
    """Whether a length is so many times the updates, but for what is left of an epoch after its last whole window."""
    return abs(length - factor * updates) <= min(epochs * (factor - 1), NEAR * length)


def _passes(run: Run, updates: int) -> int:
    """Backward passes an update on rank 0, where nearly all updates have the same number; 0 where they differ."""
    counts = [
        step.counts["backward_calls"] // step.counts["updates"]
        for step in run.ranks[0].steps
        if step.counts.get("updates") and step.counts.get("backward_calls")
    ]
    if not counts:
        return 0
    usual = max(set(counts), key=counts.count)
    return usual if counts.count(usual) >= (1 - 2 * NEAR) * len(counts) else 0


def _too_early(run: Run, end: Mapping[str, Any]) -> bool:
    """Whether it is stepped once before the first update, and goes on so. A scaler may have skipped the first update."""
    scaler = any(event.name == "precision_use" and event.fields["what"] == "scaler" for event in run.ranks[0].events)
    return not scaler and not end["given"] and end["before_first_update"] == 1 and end["calls"] > 1


def of_metric(run: Run, where: str | None, evidence: dict[str, Quantity], answer: Answer) -> Verdict | None:
    """Where a scheduler that looks at a metric is given another one on each rank; None where it is not."""
    metrics = [[float(e.fields["metric"]) for e in log.events if e.name == "plateau"] for log in run.ranks]
    calls = min(map(len, metrics))
    if run.world_size < 2 or not calls:
        return None
    values = np.array([of_rank[:calls] for of_rank in metrics])
    with np.errstate(invalid="ignore"):
        apart = np.ptp(values, axis=0) > APART * np.abs(values).max(axis=0)
    if apart.sum() < min(2, calls):
        return None
    at = int(np.argmax(apart))
    told: dict[str, Sequence[float]] = {"values": [float(f"{value:.4g}") for value in values[:, at]]}
    return answer("found", "metric-differs-between-ranks", evidence, where=where, **told)
