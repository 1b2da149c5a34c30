"""Does this stage send more than a cheaper one that fits, and take longer for it?

Three things make the answer: what fits into the device's memory, as measured; what a rank sends on this backend, as counted
from what was dispatched; and the time of a step, both on the same link. More bytes that cost no time are no fault.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...record.quantity import Quantity
from ...record.roles import Role
from ...record.schema import Record, Run
from ...theory.strategies import STRATEGIES
from ...theory.zero import cheapest, recipe
from ..spread import FLOOR_S
from ..under_load import uneven
from ..verdict import Verdict, answering
from .measures import backend_bytes, operations, peak_bytes, strategy_of, strategy_runs, timed_steps_s

NAME = "wrong-stage"
QUESTION = "Does this stage of ZeRO cost time that a cheaper one, which fits, would not?"
TIMED = True
_answer = answering(NAME, QUESTION)

LESS = 0.95
"""A stage is cheaper if it sends less than this share."""

SLOWER = 1.03
"""Ratio of step times that is worth a word."""

ENOUGH = 3
"""Steps of each that must have been timed."""


def detect(record: Record) -> Verdict:
    """Judge the run under study beside the runs of other strategies in the record."""
    run = record.run
    if Role.VARIANT not in record.runs and len(strategy_runs(record)) > 1:
        return _answer("not_applicable", "strategies-are-compared")
    missing = _lacks(run)
    if missing is not None:
        return _answer("not_applicable", missing)
    own_peak, room = _peak(run), float(run.fact("room_bytes", 0))  # pyright: ignore
    evidence = {
        "sent": Quantity(backend_bytes(run) / 1e6, "MB a rank and step"),
        "peak": Quantity(own_peak / 1e6, "MB of state"),
        "room": Quantity(room / 1e6, "MB"),
    }
    others = {name: other for name, other in strategy_runs(record).items() if other is not run and not _lacks(other)}
    fitting = {name: other for name, other in others.items() if _peak(other) <= room}
    if own_peak > room and (smaller := _smaller(run, fitting)):
        return _larger_than_a_lower_stage(run, smaller, fitting[smaller], evidence)
    cheaper = {name: other for name, other in fitting.items() if backend_bytes(other) < LESS * backend_bytes(run)}
    if not cheaper:
        return _nothing_cheaper(run, bool(others), room, own_peak, evidence)
    best = min(cheaper, key=lambda name: backend_bytes(cheaper[name]))
    return _beside(record, run, best, cheaper[best], evidence)


def _peak(run: Run) -> int:
    """Bytes of the rank that held the most."""
    peaks = peak_bytes(run)
    return 0 if peaks is None else int(peaks.max())


def _lacks(run: Run) -> str | None:
    """The reason for which a run cannot be judged; None where it lacks nothing."""
    if strategy_of(run) not in STRATEGIES:
        return "no-strategy-declared"
    if run.world_size == 1:
        return "one-rank-shares-nothing"
    if not operations(run) or peak_bytes(run) is None:
        return "memory-and-collectives-not-counted"
    return None if run.fact("room_bytes") else "room-not-declared"


def _smaller(run: Run, fitting: Mapping[str, Run]) -> str | None:
    """Of the runs that fit, the one of a lower stage that holds least; None without one."""
    stage = STRATEGIES[strategy_of(run)].stage
    lower = [name for name, other in fitting.items() if STRATEGIES[strategy_of(other)].stage < stage]
    return min(lower, key=lambda name: _peak(fitting[name]), default=None)


def _larger_than_a_lower_stage(run: Run, name: str, other: Run, evidence: dict[str, Quantity]) -> Verdict:
    return _answer(
        "found",
        "lower-stage-holds-less",
        evidence | {f"peak_of_{name.replace('-', '_')}": Quantity(_peak(other) / 1e6, "MB of state")},
        where=str(run.fact("wrap_where", "")) or None,
        own=strategy_of(run),
        lower=name,
        stage=STRATEGIES[strategy_of(other)].stage,
    )


def _nothing_cheaper(run: Run, compared: bool, room: float, own_peak: int, evidence: dict[str, Quantity]) -> Verdict:
    name, stage = strategy_of(run), STRATEGIES[strategy_of(run)].stage
    if own_peak > room:
        return _answer("clear", "stage-itself-does-not-fit", evidence, own=name)
    if compared:
        return _answer("clear", "nothing-that-fits-sends-less", evidence, own=name)
    size = int(run.fact("element_bytes", 4)) / 4  # pyright: ignore
    kept = recipe("fp32 Adam")
    best = cheapest(float(run.fact("num_parameters", 1)) * size, run.world_size, room, kept=kept)  # pyright: ignore
    if best is None or best.stage >= stage:
        return _answer("clear", "no-lower-stage-fits", evidence, stage=stage)
    return _answer("not_applicable", "lower-stage-was-not-run", evidence, stage=best.stage)


def _beside(record: Record, run: Run, best: str, other: Run, evidence: dict[str, Quantity]) -> Verdict:
    own, cheap, source = timed_steps_s(run), timed_steps_s(other), record.link_source
    name, of_best = strategy_of(run), best.replace("-", "_")
    evidence |= {
        f"sent_by_{of_best}": Quantity(backend_bytes(other) / 1e6, "MB a rank and step"),
        f"peak_of_{of_best}": Quantity(_peak(other) / 1e6, "MB of state"),
    }
    if min(len(own), len(cheap)) < ENOUGH:
        return _answer("inconclusive", "too-few-steps-beside-a-cheaper-stage", evidence, cheaper=best)
    evidence |= {
        "step_time": Quantity(float(np.median(own)) * 1e3, "ms", source),
        f"step_time_of_{of_best}": Quantity(float(np.median(cheap)) * 1e3, "ms", source),
    }
    more, doubt = backend_bytes(run) / backend_bytes(other), uneven(run, other)
    quick = float(np.quantile(cheap, 0.25))
    if own.min() > max(SLOWER * doubt * quick, quick + FLOOR_S):
        return _answer(
            "found",
            "without-resharding-is-faster" if best == "fsdp2-no-reshard" else "cheaper-stage-is-faster",
            evidence,
            where=str(run.fact("wrap_where", "")) or None,
            waste=max(0.0, 1 - float(np.median(cheap)) / float(np.median(own))),
            own=name,
            cheaper=best,
            more=more,
        )
    if np.quantile(own, 0.25) <= SLOWER * cheap.min() and doubt == 1:
        return _answer("clear", "more-sent-in-no-more-time", evidence, own=name, cheaper=best, more=more)
    return _answer("inconclusive", "cost-hidden-by-noise", evidence, own=name, cheaper=best, more=more)
