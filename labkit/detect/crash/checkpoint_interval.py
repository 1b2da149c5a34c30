"""Are checkpoints as frequent as they should be?

Each save stops the training for a while; each crash loses what came since the last. The goodput of an interval follows from
the cost of a save, measured here, and the mean time between failures, which only the owner of the cluster knows.
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ...theory.reliability import Costs, best_interval, goodput, young_interval
from ..under_load import hindered
from ..verdict import Verdict, answering, either
from .measures import attempts, crashes, saves

NAME = "checkpoint-interval"
QUESTION = "Are checkpoints as frequent as failures ask for?"
TIMED = True
_answer = answering(NAME, QUESTION)

WORTH_SAYING = 0.02
"""Goodput that another interval would have to gain, of all time."""

ENOUGH = 3


def detect(record: Record) -> Verdict:
    """Compare the goodput of the measured interval with that of the best one."""
    run = record.run
    stalls = np.array([save.stall_s for save in saves(run) if save.stall_s > 0])
    if not len(stalls):
        return _answer(
            "not_applicable",
            cause="the program recorded no save with the time that it took",
            fix="record each with probe.event('save', of_step=…, stall_s=…)",
        )
    interval = interval_s(run)
    if interval is None or len(stalls) < ENOUGH:
        return _answer(
            "inconclusive",
            {"saves": Quantity(len(stalls))},
            cause="too few saves to measure their interval and their cost",
            fix=f"run until {ENOUGH} checkpoints are written",
        )
    low, middle, high = (float(np.quantile(stalls, q)) for q in (0.1, 0.5, 0.9))
    evidence = {
        "interval": Quantity(interval, "s of computation"),
        "save": Quantity(middle, "s, training waits"),
        "saves": Quantity(len(stalls)),
    }
    mtbf = float(str(run.fact("mtbf_s", 0.0)))
    if mtbf <= 0:
        return _answer(
            "inconclusive",
            evidence,
            cause="the mean time between failures is not known, and without it no interval is right or wrong",
            fix=either(
                lab="take it from the cluster's history, or from published counts, and say it (--set mtbf_s=…)",
                script="take it from the cluster's history, or from published counts, and say it: probe.declare(mtbf_s=…)",
            ),
        )
    restart = max((crash.restart_s for crash in crashes(run)), default=0.0)
    low /= hindered(run)  # a save may have waited for a core that others had
    gains = [_gain(interval, Costs(save=save, restart=restart, mtbf=mtbf)) for save in (low, middle, high)]
    costs = Costs(save=middle, restart=restart, mtbf=mtbf)
    evidence |= {
        "mtbf": Quantity(mtbf, "s, as given"),
        "young_interval": Quantity(young_interval(costs), "s", "simulated"),
        "goodput_at_interval": Quantity(goodput(interval, costs), "of the time", "simulated"),
        "goodput_best": Quantity(goodput(best_interval(costs), costs), "of the time", "simulated"),
    }
    if min(gains) > WORTH_SAYING:
        seldom = interval > best_interval(costs)
        how, what = ("seldom", "what crashes undo") if seldom else ("often", "what saves cost")
        return _answer(
            "found",
            evidence,
            cause=f"a checkpoint every {interval:.3g} s of computation is too {how}: {what} takes {gains[1]:.0%} of all "
            "time more than it would have to",
            fix=f"save about every {young_interval(costs):.3g} s: √(2 × cost of a save × mean time between failures)",
            where=str(run.fact("keeper_where", "")) or None,
            waste=gains[1],
        )
    if max(gains) < WORTH_SAYING:
        return _answer("clear", evidence, cause=f"another interval would gain less than {WORTH_SAYING:.0%} of the time")
    return _answer(
        "inconclusive",
        evidence,
        cause="the cost of a save varies so much that the best interval may or may not be another",
        fix="measure more saves, on a quiet machine",
    )


def interval_s(run: Run) -> float | None:
    """Computation between two checkpoints, in seconds: steps between them, times the median step."""
    steps = sorted({save.of_step for save in saves(run)})
    gaps = np.diff(steps) if len(steps) > 1 else np.array([])
    took = [(s.end_ns - s.start_ns) / 1e9 for attempt in attempts(run) for log in attempt.logs for s in log.steps]
    return float(np.median(gaps) * np.median(took)) if len(gaps) and took else None


def _gain(interval: float, costs: Costs) -> float:
    return goodput(best_interval(costs), costs) - goodput(interval, costs)
