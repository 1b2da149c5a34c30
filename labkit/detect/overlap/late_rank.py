"""Does one rank keep the others waiting?

A collective makes all ranks as slow as the slowest: the durations of steps and of backward() are equal on all of them, and
say nothing. When each rank came to each collective does: clocks aligned, the one that all wait for comes last. Each
reduction is judged, and a rank is blamed for what noise that strikes ranks at random would hardly do (detect/spread.py).
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Source
from ...words import plural
from ..spread import FEW, Slow, slow_ranks
from ..under_load import pressure
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

LUCK = 0.01
"""Of W equally quick ranks one is last in all of n reductions with probability W^(1-n). Below this they are not few."""


def detect(record: Record) -> Verdict:
    """Judge the reductions of the run under study."""
    run = record.run
    if run.world_size == 1:
        return _answer("not_applicable", cause="one rank waits for nobody", fix="run with 2 ranks or more")
    seen = [] if is_sweep(run) else arrivals(run)
    if not seen:
        return _answer(
            "not_applicable",
            cause="no bucket's arrival was seen on all ranks",
            fix="watch the DDP module with watch_ddp(ddp, probe) on every rank",
        )
    late = np.array([one.late_s for one in seen])  # by reduction and rank
    step_s = float(np.median([longest_s(of_ranks) for of_ranks in measured_steps(run)]))
    found = slow_ranks(late, least_s=LATE * pressure(run) * step_s, whole_s=np.full(len(late), step_s))
    worst, evidence = found[0], _evidence(late, step_s, record.link_source)
    if len(seen) < ENOUGH:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"{plural(len(seen), 'reduction')}: who came last may be chance",
            fix=f"run {ENOUGH + 2} steps or more",
        )
    if worst.matters and not worst.by_turns:
        return _blame(seen, late, step_s, [one for one in found if one.matters], evidence)
    if pressure(run) > 1 and _late_as_usual(late, step_s):
        return _answer(
            "inconclusive",
            evidence,
            cause="more threads than cores wanted to run, which by itself makes ranks late by so much",
            fix=QUIET,
        )
    return _answer("clear", evidence, cause="who comes last changes, or comes little later than the others")


QUIET = "run more steps, on machines that do nothing else"


def _late_as_usual(late: np.ndarray, step_s: float) -> bool:
    """Whether a rank is late by the measure of a machine that has a core for each."""
    usual = slow_ranks(late, least_s=LATE * step_s, whole_s=np.full(len(late), step_s))[0]
    return usual.matters and not usual.by_turns


def _blame(
    seen: list[Arrivals], late: np.ndarray, step_s: float, found: list[Slow], evidence: dict[str, Quantity]
) -> Verdict:
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
            evidence,
            cause=f"rank {worst.rank} is late by {by_ms:.0f} ms in {len(worst.steps)} of {plural(len(seen), 'reduction')}, "
            "but that is too few, or the time varies too much, to be more than chance or another program on its cores",
            fix=QUIET,
        )
    others = f" (and {', '.join(f'rank {one}' for one in sorted(one.rank for one in proven[1:]))})" * (len(proven) > 1)
    at_start = float(np.median([seen[at].late_at_start_s[worst.rank] for at in worst.steps])) * 1e3
    begins = "before its backward pass, in its forward pass or its input" if at_start > by_ms / 2 else "in its backward pass"
    return _answer(
        "found",
        evidence | {"late_when_backward_begins": Quantity(at_start, "ms")},
        cause=f"rank {worst.rank}{others} comes {by_ms:.0f} ms later to the collectives than the others, who wait"
        f"{_when(seen, worst)}; it loses the time {begins}",
        fix=f"look at what rank {worst.rank} does that others do not: its data, its host, what else runs there; its own "
        "step time will not show it",
        waste=min(1.0, worst.cost) * (late.shape[1] - len(proven)) / late.shape[1],
    )


def _plain(late_s: np.ndarray, of: tuple[int, ...]) -> bool:
    """Whether a lateness is no chance by its size: it varies little, or there are reductions (of ranks) enough to tell."""
    reductions, ranks = of
    low, middle, high = np.quantile(late_s, (0.1, 0.5, 0.9))
    return reductions >= FEW or middle >= (PLAIN if ranks ** (1.0 - reductions) >= LUCK else 1.0) * (high - low)


def _when(seen: list[Arrivals], worst: Slow) -> str:
    """From which step on it is late, and how often, where that is not always."""
    if worst.share > 0.9:
        return f", from step {seen[worst.begin].step} on" if worst.begin > 2 else ""
    return f", in {len(worst.steps)} of {plural(len(seen), 'reduction')}"


def _evidence(late: np.ndarray, step_s: float, source: Source | None) -> dict[str, Quantity]:
    middle = np.median(late, axis=0)
    return {
        "step": Quantity(step_s * 1e3, "ms", source),
        "latest_rank": Quantity(int(middle.argmax())),
        "later_than_the_middle": Quantity(float(middle.max()) * 1e3, "ms, median over the reductions"),
        "worst_single": Quantity(float(late.max()) * 1e3, "ms"),
        "reductions": Quantity(len(late), "compared"),
    }
