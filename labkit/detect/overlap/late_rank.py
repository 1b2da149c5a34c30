"""Does one rank keep the others waiting?

A collective makes all ranks as slow as the slowest: the durations of steps and of backward() are equal on all of them, and
say nothing. When each rank came to each collective does: clocks aligned, the one that all wait for comes last. Each
reduction is judged, and a rank is blamed for what noise that strikes ranks at random would hardly do (detect/spread.py).
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Source
from ..catalogue import Said, said
from ..spread import FEW, Slow, slow_ranks
from ..under_load import is_heavy, pressure
from ..verdict import Verdict, answering
from .measures import Arrivals, arrivals, is_sweep, longest_s, measured_steps

NAME = "late-rank"
QUESTION = "Does one rank keep the others waiting at the collectives?"
_answer = answering(NAME, QUESTION)

TIMED = True

LATE = 0.15
"""Of the step: a rank that comes this much later than the middle of them is late; more, where ranks outnumber the cores."""

ENOUGH = 4
"""Reductions below which who came last may be chance, whatever the times."""

PLAIN = 3.0
"""A lateness of this many times what it varies by is no luck, in however few reductions; once is enough in more of them."""

UNDER_LOAD = 0.75
"""Of the step: where others take much of the cores, one rank may share its core with them all the time, and another not."""

LUCK = 0.01
"""Of W equally quick ranks one is last in all of n reductions with probability W^(1-n). Below this they are not few."""


def detect(record: Record) -> Verdict:
    """Judge the reductions of the run under study."""
    run = record.run
    if run.world_size == 1:
        return _answer("not_applicable", "one-rank-waits-for-nobody")
    group = run.fact("ddp_world_size", run.world_size)
    if isinstance(group, int) and group < run.world_size:
        return _answer("not_applicable", "ranks-reduce-in-groups")
    seen = [] if is_sweep(run) else arrivals(run)
    if not seen:
        return _answer("not_applicable", "no-arrival-seen")
    late = np.array([one.late_s for one in seen])  # by reduction and rank
    step_s = float(np.median([longest_s(of_ranks) for of_ranks in measured_steps(run)]))
    found = slow_ranks(late, least_s=LATE * pressure(run) * step_s, whole_s=np.full(len(late), step_s))
    worst, evidence = found[0], _evidence(late, step_s, record.link_source)
    if len(seen) < ENOUGH:
        return _answer("inconclusive", "too-few-reductions", evidence, reductions=len(seen), enough=ENOUGH + 2)
    if worst.matters and not worst.by_turns:
        if is_heavy(run) and float(np.median(late[worst.steps, worst.rank])) < UNDER_LOAD * step_s:
            return _answer("inconclusive", "late-as-threads-outnumber-cores", evidence)
        return _blame(seen, late, [one for one in found if one.matters], evidence)
    if pressure(run) > 1 and _late_as_usual(late, step_s):
        return _answer("inconclusive", "late-as-threads-outnumber-cores", evidence)
    return _answer("clear", "no-rank-is-late", evidence)


def _late_as_usual(late: np.ndarray, step_s: float) -> bool:
    """Whether a rank is late by the measure of a machine that has a core for each."""
    usual = slow_ranks(late, least_s=LATE * step_s, whole_s=np.full(len(late), step_s))[0]
    return usual.matters and not usual.by_turns


def _blame(seen: list[Arrivals], late: np.ndarray, found: list[Slow], evidence: dict[str, Quantity]) -> Verdict:
    """The verdict on ranks whose lateness costs enough to be worth a word."""
    proven = [one for one in found if one.proven and _plain(late[one.steps, one.rank], late.shape)]
    worst = proven[0] if proven else found[0]
    by_ms = float(np.median(late[worst.steps, worst.rank])) * 1e3
    evidence = evidence | {
        "late_from_step": Quantity(seen[worst.begin].step),
        "late_in": Quantity(len(worst.steps), f"of {len(seen)} reductions"),
    }
    if not proven:
        return _answer(
            "inconclusive",
            "rank-late-perhaps-by-chance",
            evidence,
            rank=worst.rank,
            by_ms=by_ms,
            late=len(worst.steps),
            reductions=len(seen),
        )
    at_start_ms = float(np.median([seen[at].late_at_start_s[worst.rank] for at in worst.steps])) * 1e3
    return _answer(
        "found",
        "rank-late-before-its-backward-pass" if at_start_ms > by_ms / 2 else "rank-late-in-its-backward-pass",
        evidence | {"late_when_backward_begins": Quantity(at_start_ms, "ms")},
        waste=min(1.0, worst.cost) * (late.shape[1] - len(proven)) / late.shape[1],
        rank=worst.rank,
        others=said("and-other-late-ranks", ranks=sorted(one.rank for one in proven[1:])) if proven[1:] else "",
        by_ms=by_ms,
        when=_when(seen, worst),
    )


def _plain(late_s: np.ndarray, of: tuple[int, ...]) -> bool:
    """Whether a lateness is no chance by its size: it varies little, or there are reductions (of ranks) enough to tell."""
    reductions, ranks = of
    low, middle, high = np.quantile(late_s, (0.1, 0.5, 0.9))
    return reductions >= FEW or middle >= (PLAIN if ranks ** (1.0 - reductions) >= LUCK else 1.0) * (high - low)


def _when(seen: list[Arrivals], worst: Slow) -> Said | str:
    """From which step on it is late, or how often; empty where that is always."""
    if worst.share <= 0.9:
        return said("late-in-some-reductions", late=len(worst.steps), reductions=len(seen))
    return said("late-from-a-step-on", step=seen[worst.begin].step) if worst.begin > 2 else ""


def _evidence(late: np.ndarray, step_s: float, source: Source | None) -> dict[str, Quantity]:
    middle = np.median(late, axis=0)
    return {
        "step": Quantity(step_s * 1e3, "ms", source),
        "latest_rank": Quantity(int(middle.argmax())),
        "later_than_the_middle": Quantity(float(middle.max()) * 1e3, "ms, median over the reductions"),
        "worst_single": Quantity(float(late.max()) * 1e3, "ms"),
        "reductions": Quantity(len(late), "compared"),
    }
