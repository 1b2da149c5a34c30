"""Does one rank keep the others waiting?

A collective makes all ranks as slow as the slowest: the durations of steps and of backward() are equal on all of them, and
say nothing. When each rank came to each collective does: clocks aligned, the one that all wait for comes last.
"""

from __future__ import annotations

import numpy as np

from ..record.measures import Quantity
from ..record.measures_overlap import arrivals, is_sweep, longest_s, measured_steps
from ..record.schema import Record, Source
from ..words import plural
from .verdict import Verdict, answering

NAME = "late-rank"
QUESTION = "Does one rank keep the others waiting at the collectives?"
_answer = answering(NAME, QUESTION)

LATE = 0.15
"""Of the step: a rank that comes this much later than the middle of them is worth a word."""

USUALLY = 0.75
"""Share of the reductions in which it must be late: who is last by chance changes from one to the next."""

ENOUGH = 3

CHANCE = 0.01
"""Of W equally quick ranks one is last in all of n reductions with probability W^(1-n). Above this it may be luck."""

PLAIN = 3.0
"""A lateness of this many times what it varies by is no luck, in however few reductions."""


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
    middle = np.median(late, axis=0)
    often = (late > LATE / 2 * step_s).mean(axis=0)
    evidence = _evidence(late, step_s, record.link_source)
    if len(seen) < ENOUGH:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"{plural(len(seen), 'reduction')}: who came last may be chance",
            fix=f"run {ENOUGH + 2} steps or more",
        )
    who = [rank for rank in np.argsort(-middle) if middle[rank] > LATE * step_s and often[rank] >= USUALLY]
    if middle.max() <= LATE * step_s:
        return _answer("clear", evidence, cause="who comes last changes, or comes little later than the others")
    varies = float(np.subtract(*np.quantile(late[:, int(middle.argmax())], (0.9, 0.1))))
    luck = run.world_size ** (1.0 - len(seen))
    if not who or middle[who[0]] <= (varies if luck < CHANCE else PLAIN * varies):
        return _answer(
            "inconclusive",
            evidence,
            cause=f"rank {int(middle.argmax())} is late by {middle.max() * 1e3:.0f} ms, but not in every reduction, or by a "
            f"time that varies by {varies * 1e3:.0f} ms, {len(seen)} of them in all: it may be chance, or another program "
            "on its cores",
            fix="run more steps, on machines that do nothing else",
        )
    worst = int(who[0])
    others = f" (and {', '.join(f'rank {rank}' for rank in sorted(who[1:]))})" if len(who) > 1 else ""
    start = float(np.median([one.late_at_start_s[worst] for one in seen]))
    begins = (
        "before its backward pass, in its forward pass or its input" if start > middle[worst] / 2 else "in its backward pass"
    )
    return _answer(
        "found",
        evidence | {"late_when_backward_begins": Quantity(start * 1e3, "ms")},
        cause=f"rank {worst}{others} comes {middle[worst] * 1e3:.0f} ms later to the collectives than the others, who wait; "
        f"it loses the time {begins}",
        fix=f"look at what rank {worst} does that others do not: its data, its host, what else runs there; its own step "
        "time will not show it",
        waste=float(min(1.0, middle[worst] / step_s)) * (run.world_size - len(who)) / run.world_size,
    )


def _evidence(late: np.ndarray, step_s: float, source: Source | None) -> dict[str, Quantity]:
    middle = np.median(late, axis=0)
    found = {
        "step": Quantity(step_s * 1e3, "ms", source),
        "latest_rank": Quantity(int(middle.argmax())),
        "later_than_the_middle": Quantity(float(middle.max()) * 1e3, "ms, median over the reductions"),
        "worst_single": Quantity(float(late.max()) * 1e3, "ms"),
        "reductions": Quantity(len(late), "compared"),
    }
    return found
