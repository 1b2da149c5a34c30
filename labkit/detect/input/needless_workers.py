"""Do the workers cost more than they bring?

Workers prepare a batch in another process and pass it on, which takes a millisecond or so. Where data are ready in memory
there is nothing to prepare, and passing them on is all that the workers do. Judged beside the same run without workers.
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.roles import Role
from ...record.schema import Record, Run
from ..under_load import uneven
from ..verdict import Verdict, answering
from .measures import ENOUGH, judged_steps, step_s, times_faster

NAME = "needless-workers"
QUESTION = "Is the run faster without DataLoader workers?"
TIMED = True
_answer = answering(NAME, QUESTION)

FASTER = 1.15
"""The one run must be this many times as fast as the other; more, where other programs hindered them differently."""

FLOOR_S = 0.0002
"""Of a step: less than this is gained or lost by a change in the order of things."""

STEADY = 2.0
"""Steps whose middle half spans more than this factor hide a difference that is worth a word."""


def detect(record: Record) -> Verdict:
    """Compare the run's steps with those of the same run without workers."""
    run = record.run
    workers = int(run.fact("workers", 0) or 0)  # pyright: ignore[reportArgumentType]
    if not workers:
        return _answer("not_applicable", "no-workers")
    if Role.INLINE not in record.runs:
        return _answer("not_applicable", "no-run-without-workers")
    ratio, own, other = times_faster(record, Role.INLINE), _quarters(run), _quarters(record.runs[Role.INLINE])
    if ratio is None or own is None or other is None:
        return _answer("inconclusive", "too-few-steps-to-compare", least=ENOUGH + 2)
    (own_low, own_high), (other_low, other_high) = own, other
    evidence = {
        "without_workers": Quantity(ratio, "x this run's rate"),
        "workers": Quantity(workers, "a rank"),
        "step_with_middle_half": Quantity(f"{own_low * 1e3:.3g} to {own_high * 1e3:.3g}", "ms"),
        "step_without_middle_half": Quantity(f"{other_low * 1e3:.3g} to {other_high * 1e3:.3g}", "ms"),
    }
    faster = FASTER * uneven(run, record.runs[Role.INLINE])
    if ratio >= faster and other_high < own_low - FLOOR_S:
        where, waste = str(run.fact("loader_where", "")) or None, max(0.0, 1 - 1 / ratio)
        return _answer("found", "faster-without-workers", evidence, where=where, waste=waste, times=ratio)
    if ratio <= 1 / faster and own_high < other_low:
        return _answer("clear", "faster-with-workers", evidence, times=1 / ratio)
    if 1 / FASTER < ratio < FASTER and faster == FASTER and max(own_high / own_low, other_high / other_low) <= STEADY:
        return _answer("clear", "as-fast-with-workers", evidence)
    return _answer("inconclusive", "steps-overlap", evidence)


def _quarters(run: Run) -> tuple[float, float] | None:
    """The bounds of the middle half of all ranks' step times."""
    steps = [step for log in run.ranks for step in judged_steps(log)]
    if len(steps) < ENOUGH:
        return None
    low, high = np.quantile(step_s(steps), [0.25, 0.75])
    return float(low), float(high)
