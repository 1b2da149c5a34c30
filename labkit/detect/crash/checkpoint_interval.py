"""Are checkpoints as frequent as they should be?

Each save stops the training for a while; each crash loses what came since the last. The goodput of an interval follows from
the cost of a save, measured here, and the mean time between failures, which only the owner of the cluster knows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ...theory.reliability import Costs, best_interval, goodput, young_interval
from ..under_load import hindered
from ..verdict import Verdict, answering
from .measures import attempts, crashes, saves

NAME = "checkpoint-interval"
QUESTION = "Are checkpoints saved at a good interval?"
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
        return _answer("not_applicable", "no-save-timed")
    interval = interval_s(run)
    if interval is None or len(stalls) < ENOUGH:
        return _answer("inconclusive", "too-few-saves", {"saves": Quantity(len(stalls))}, enough=ENOUGH)
    low, middle, high = (float(np.quantile(stalls, q)) for q in (0.1, 0.5, 0.9))
    evidence = {
        "interval": Quantity(interval, "s of computation"),
        "save": Quantity(middle, "s, training waits"),
        "saves": Quantity(len(stalls)),
    }
    mtbf = float(str(run.fact("mtbf_s", 0.0)))
    if mtbf <= 0:
        return _answer("inconclusive", "time-between-failures-not-known", evidence)
    restart = max((crash.restart_s for crash in crashes(run)), default=0.0)
    low /= hindered(run)  # a save may have waited for a core that others had
    costs = [Costs(save=save, restart=restart, mtbf=mtbf) for save in (low, middle, high)]
    return _compared(run, interval, costs, evidence)


def _compared(run: Run, interval: float, costs: Sequence[Costs], evidence: dict[str, Quantity]) -> Verdict:
    """By what the best interval gains over the measured one, with saves of a low, the usual and a high cost."""
    gains, (_, usual, _) = [_gain(interval, cost) for cost in costs], costs
    better, best = young_interval(usual), best_interval(usual)
    evidence |= {
        "mtbf": Quantity(usual.mtbf, "s, as given"),
        "young_interval": Quantity(better, "s", "simulated"),
        "goodput_at_interval": Quantity(goodput(interval, usual), "of the time", "simulated"),
        "goodput_best": Quantity(goodput(best, usual), "of the time", "simulated"),
    }
    if max(gains) < WORTH_SAYING:
        return _answer("clear", "no-interval-much-better", evidence, least=WORTH_SAYING)
    if min(gains) > WORTH_SAYING:
        return _answer(
            "found",
            "saves-too-seldom" if interval > best else "saves-too-often",
            evidence,
            where=str(run.fact("keeper_where", "")) or None,
            waste=gains[1],
            interval=interval,
            gain=gains[1],
            better=better,
        )
    return _answer("inconclusive", "cost-of-a-save-varies", evidence)


def interval_s(run: Run) -> float | None:
    """Computation between two checkpoints, in seconds: steps between them, times the median step."""
    steps = sorted({save.of_step for save in saves(run)})
    gaps = np.diff(steps) if len(steps) > 1 else np.array([])
    took = [(s.end_ns - s.start_ns) / 1e9 for attempt in attempts(run) for log in attempt.logs for s in log.steps]
    return float(np.median(gaps) * np.median(took)) if len(gaps) and took else None


def _gain(interval: float, costs: Costs) -> float:
    return goodput(best_interval(costs), costs) - goodput(interval, costs)
