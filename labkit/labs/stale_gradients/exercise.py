"""Check a learner's learning rate: against theory, for several numbers of workers; then by training with it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...errors import LabkitError, shown
from ...ranks.context import RankContext
from ...record.delay import stability_limit

CASES = ((8, 5.0), (2, 1.0), (4, 2.5), (16, 5.0), (8, 0.5))
"""(W, λ) at which the function is asked."""

WORKERS = 8
TOO_TIMID = 0.25
"""Share of the limit below which a learning rate wastes more than three quarters of the updates."""


@dataclass(frozen=True)
class _Asked:
    pick: Callable[..., Any]


def check(pick: Callable[..., Any], lab: Any) -> list[str]:
    """What is still wrong with the learning rates that `pick` gives, in sentences; an empty list when nothing is.

    The function runs in a process of its own, so that one that hangs or crashes does no harm here.
    """
    try:
        answers = lab.try_out(ask, _Asked(pick))
    except LabkitError as error:
        return [f"the function did not finish: {error}"]
    if isinstance(answers, str):
        return [answers]
    return _judge(dict(zip(CASES, answers, strict=True))) or _check_on_ranks(pick, lab)


def ask(context: RankContext) -> list[float] | str:
    """What the function gives in each case. *Called on* one rank, without a group."""
    asked: _Asked = context.config
    answers = []
    for workers, sharpness in CASES:
        answer = asked.pick(workers, sharpness)
        try:
            answers.append(float(answer))
        except (TypeError, ValueError, OverflowError, RuntimeError):
            return f"for workers={workers}, sharpness={sharpness:g} the function returned {shown(answer)}; return one number"
    return answers


def _judge(answers: dict[tuple[int, float], float]) -> list[str]:
    limits = {(workers, sharpness): stability_limit(workers - 1) / sharpness for workers, sharpness in answers}
    for (workers, sharpness), answer in answers.items():
        said = f"for {workers} workers and a curvature of {sharpness:g} you take {answer:.3g}"
        if not (math.isfinite(answer) and answer > 0):
            return [f"{said}; a learning rate is a number above 0"]
        share = answer / limits[workers, sharpness]
        if share >= 1:
            return [f"{said}, {share:.2g} times the limit of {limits[workers, sharpness]:.3g}: too high{_why(answers)}"]
        if share < TOO_TIMID:
            return [
                f"{said}, {share:.0%} of the limit of {limits[workers, sharpness]:.3g}: stable, but too low: it needs "
                f"{1 / share:.2g} times as many updates{_why(answers)}"
            ]
    return []


def _why(answers: dict[tuple[int, float], float]) -> str:
    """What a wrong rule seems to have left out."""
    if len(set(answers.values())) == 1:
        return "; it depends on neither the workers nor the curvature"
    if answers[8, 5.0] == answers[8, 0.5]:
        return "; theory bounds lr times the curvature, so divide by it"
    if math.isclose(answers[8, 5.0], answers[16, 5.0]):
        return "; it does not depend on the workers, but W of them make gradients W - 1 versions old"
    return "; with W workers the delay τ is W - 1, and lr·λ must stay below 2·sin(π/(2(2τ+1)))"


def _check_on_ranks(pick: Callable[..., Any], lab: Any) -> list[str]:
    settings = {"ranks": WORKERS, "momentum": 0.0, "steps": 60, "repeats": 0, "compare": "no", "deadline_s": 60}
    try:
        record = lab.run(pick, **settings)
    except LabkitError as error:
        return [f"on {WORKERS} real workers the run failed: {error}"]
    evidence = lab.judge(record)["stale-gradients"].evidence
    first, last = float(evidence["loss_first"].value), float(evidence["loss_last"].value)
    if not last < 0.9 * first:
        return [f"on {WORKERS} real workers the loss goes from {first:.3g} to {last:.3g}: it does not learn"]
    return []
