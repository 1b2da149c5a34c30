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
from ..verdict import Verdict, answering, either
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
        return _answer(
            "not_applicable", cause="this record compares strategies, none is under study", fix="read its table, or run one"
        )
    missing = _lacks(run)
    if missing:
        return _answer("not_applicable", cause=missing[0], fix=missing[1])
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


def _lacks(run: Run) -> tuple[str, str] | None:
    """What a run lacks to be judged, and what to do about it."""
    if strategy_of(run) not in STRATEGIES:
        return (
            "no strategy was declared",
            "declare strategy, num_parameters and room_bytes, and count a step (lab zero-stages)",
        )
    if run.world_size == 1:
        return "one rank sends nothing, and has nobody to share with", "run it on several ranks"
    if not operations(run) or peak_bytes(run) is None:
        return "no step's memory and collectives were counted", "count a step with CollectiveCounter and bytes_alive"
    if not run.fact("room_bytes"):
        return "how much memory a device has was not declared", "declare room_bytes"
    return None


def _smaller(run: Run, fitting: Mapping[str, Run]) -> str | None:
    """Of the runs that fit, the one of a lower stage that holds least; None without one."""
    stage = STRATEGIES[strategy_of(run)].stage
    lower = [name for name, other in fitting.items() if STRATEGIES[strategy_of(other)].stage < stage]
    return min(lower, key=lambda name: _peak(fitting[name]), default=None)


def _larger_than_a_lower_stage(run: Run, name: str, other: Run, evidence: dict[str, Quantity]) -> Verdict:
    own, stage = strategy_of(run), STRATEGIES[strategy_of(other)].stage
    return _answer(
        "found",
        evidence | {f"peak_of_{name.replace('-', '_')}": Quantity(_peak(other) / 1e6, "MB of state")},
        cause=f"{own} holds more than the device has, and {name}, of stage {stage} only, fits: what a higher stage keeps "
        "beside its shards (weights that stay gathered, whole copies) outweighs what it saves on this model",
        fix=f"use {name}, or let {own} keep less gathered (DeepSpeed: stage3_max_live_parameters and "
        "stage3_param_persistence_threshold; hsdp: fewer replicas)",
        where=str(run.fact("wrap_where", "")) or None,
    )


def _nothing_cheaper(run: Run, compared: bool, room: float, own_peak: int, evidence: dict[str, Quantity]) -> Verdict:
    name, stage = strategy_of(run), STRATEGIES[strategy_of(run)].stage
    if own_peak > room:
        return _answer(
            "clear",
            evidence,
            cause=f"{name} does not fit itself, so it is no question of cost: a higher stage, or more ranks",
        )
    if compared:
        return _answer("clear", evidence, cause=f"of what was run beside it, nothing that fits sends less than {name}")
    size = int(run.fact("element_bytes", 4)) / 4  # pyright: ignore
    kept = recipe("fp32 Adam")
    best = cheapest(float(run.fact("num_parameters", 1)) * size, run.world_size, room, kept=kept)  # pyright: ignore
    if best is None or best.stage >= stage:
        return _answer("clear", evidence, cause=f"by the paper's formula no lower stage than {stage} fits")
    return _answer(
        "not_applicable",
        evidence,
        cause=f"by the paper's formula stage {best.stage} would fit, but no run of it lies beside this one",
        fix=f"run a strategy of stage {best.stage} on the same ranks and link",
    )


def _beside(record: Record, run: Run, best: str, other: Run, evidence: dict[str, Quantity]) -> Verdict:
    own, cheap = timed_steps_s(run), timed_steps_s(other)
    name = strategy_of(run)
    source = record.link_source
    evidence |= {
        f"sent_by_{best.replace('-', '_')}": Quantity(backend_bytes(other) / 1e6, "MB a rank and step"),
        f"peak_of_{best.replace('-', '_')}": Quantity(_peak(other) / 1e6, "MB of state"),
    }
    if min(len(own), len(cheap)) < ENOUGH:
        return _answer(
            "inconclusive", evidence, cause=f"{best} fits and sends less, but too few steps were timed", fix="run more steps"
        )
    evidence |= {
        "step_time": Quantity(float(np.median(own)) * 1e3, "ms", source),
        f"step_time_of_{best.replace('-', '_')}": Quantity(float(np.median(cheap)) * 1e3, "ms", source),
    }
    more = backend_bytes(run) / backend_bytes(other)
    doubt, least_s = uneven(run, other), FLOOR_S
    if own.min() > max(SLOWER * doubt * np.quantile(cheap, 0.25), np.quantile(cheap, 0.25) + least_s):
        return _answer(
            "found",
            evidence,
            cause=f"{name} sends {more:.2f} times what {best} sends, and {best} fits into the same memory: the difference "
            "is weights that are gathered again, and waited for",
            fix=f"use {best}"
            + (" (fully_shard with reshard_after_forward=False)" if best == "fsdp2-no-reshard" else "")
            + "; keep the higher stage for the day the lower one does not fit",
            where=str(run.fact("wrap_where", "")) or None,
            waste=max(0.0, 1 - float(np.median(cheap)) / float(np.median(own))),
        )
    if np.quantile(own, 0.25) <= SLOWER * cheap.min() and doubt == 1:
        return _answer(
            "clear", evidence, cause=f"{name} sends {more:.2f} times what {best} sends, and its steps take no longer for it"
        )
    return _answer(
        "inconclusive",
        evidence,
        cause=f"{name} sends {more:.2f} times what {best} sends, but the times of their steps overlap: noise hides the cost",
        fix=either(
            lab="stop what else runs here, run more steps (--set steps=40), or set a slower link (--link 50mbit)",
            script="stop what else runs there, run more steps, or measure on a slower link",
        ),
    )
