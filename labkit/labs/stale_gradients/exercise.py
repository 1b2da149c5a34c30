"""Check a learner's learning rate: against theory, for workers and curvatures that are drawn; then by training with it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

from ...errors import LabkitError, shown
from ...theory.delay import stability_limit
from ..checking import Question, ask, log_uniform
from ..opened import OpenedLab

Case = tuple[int, float]
"""(workers W, curvature λ)."""

NUM_CASES = 40
MOST_WORKERS = 500
WORKERS = 8
TOO_TIMID = 0.25
"""Share of the limit below which a learning rate wastes more than three quarters of the updates."""

STEADY = 1.05
"""The largest share of the limit is at most so many times the smallest: the margin is then chosen, and not an accident."""


def drawn_cases(draw: random.Random) -> list[Case]:
    """One worker, two, and up to hundreds; curvatures over six decades, and the same curvature for different workers."""
    same = log_uniform(draw, 1e-3, 1e3)
    cases = [(workers, same) for workers in (1, 2, 3, draw.randint(4, 9), draw.randint(MOST_WORKERS // 5, MOST_WORKERS))]
    rest = range(NUM_CASES - len(cases))
    return cases + [(round(log_uniform(draw, 1, MOST_WORKERS)), log_uniform(draw, 1e-3, 1e3)) for _ in rest]


def check(pick: Callable[..., Any], lab: OpenedLab, seed: int) -> list[str]:
    """What is still wrong with the learning rates that `pick` gives, in sentences; an empty list when nothing is.

    The function runs in a process of its own, so that one that hangs or crashes does no harm here.
    """
    draw = random.Random(seed)
    cases = drawn_cases(draw)
    questions = [Question(f"workers={case[0]}, sharpness={case[1]:.4g}", case) for case in cases]
    try:
        given = ask(pick, questions, lab, draw)
    except LabkitError as error:
        return [f"the function did not finish: {error}"]
    answers = []
    for question, case, answer in zip(questions, cases, given, strict=True):
        try:
            answers.append((case, float(answer)))
        except (TypeError, ValueError, OverflowError, RuntimeError):
            return [f"for {question.said} the function returned {shown(answer)}; return one number"]
    return _judge(answers) or _check_on_ranks(pick, lab, seed)


def _limit(workers: int, sharpness: float) -> float:
    return stability_limit(workers - 1) / sharpness


def _judge(answers: list[tuple[Case, float]]) -> list[str]:
    shares = [answer / _limit(*case) for case, answer in answers]
    for (case, answer), share in zip(answers, shares, strict=True):
        said = f"for {_said(case)} you take {answer:.3g}"
        if not (math.isfinite(answer) and answer > 0):
            return [f"{said}; a learning rate is a number above 0"]
        if share >= 1:
            return [f"{said}, {share:.2g} times the limit of {_limit(*case):.3g}: too high{_why(answers)}"]
        if share < TOO_TIMID:
            return [
                f"{said}, {share:.0%} of the limit of {_limit(*case):.3g}: stable, but too low: it needs "
                f"{1 / share:.2g} times as many updates{_why(answers)}"
            ]
    least, most = min(range(len(shares)), key=shares.__getitem__), max(range(len(shares)), key=shares.__getitem__)
    if shares[most] > STEADY * shares[least]:
        return [
            f"for {_said(answers[least][0])} you take {shares[least]:.0%} of the limit, for {_said(answers[most][0])} "
            f"{shares[most]:.0%}: choose one share of the limit and keep it; what you have does not follow the limit"
            f"{_why(answers)}"
        ]
    return []


def _said(case: Case) -> str:
    return f"{case[0]} worker{'s' if case[0] > 1 else ''} and a curvature of {case[1]:.3g}"


def _why(answers: list[tuple[Case, float]]) -> str:
    """What a wrong rule seems to have left out."""
    by_workers = len({answer for _, answer in answers[:5]}) > 1  # of one curvature
    scaled = [answer * sharpness for (_, sharpness), answer in answers]
    without_curvature = not by_workers and len({answer for _, answer in answers}) == 1
    if without_curvature:
        return "; it depends on neither the workers nor the curvature"
    if not by_workers:
        return "; it does not depend on the workers, but W of them make gradients W - 1 versions old"
    same = {}
    for (workers, _), value in zip((case for case, _ in answers), scaled, strict=True):
        same.setdefault(workers, []).append(value)
    if any(not math.isclose(min(values), max(values), rel_tol=0.01) for values in same.values()):
        return "; theory bounds lr times the curvature, so divide by it"
    return "; with W workers the delay τ is W - 1, and lr·λ must stay below 2·sin(π/(2(2τ+1)))"


def _check_on_ranks(pick: Callable[..., Any], lab: OpenedLab, seed: int) -> list[str]:
    """Train with it. Workers are served in turn, so that a busy machine makes no gradient older than another."""
    settings = {"ranks": WORKERS, "momentum": 0.0, "steps": 60, "repeats": 0, "compare": "no", "serve": "in-turn"}
    try:
        record = lab.run(pick, **settings, seed=seed, deadline_s=120)
    except LabkitError as error:
        return [f"on {WORKERS} real workers the run failed: {error}"]
    run = record.run
    lr, sharpness = (float(run.fact(name, lacking)) for name, lacking in (("lr", math.inf), ("sharpness", math.nan)))  # pyright: ignore[reportArgumentType]
    share = lr / _limit(WORKERS, sharpness)
    if not TOO_TIMID <= share < 1:
        return [f"on {WORKERS} real workers, for a curvature that was measured, you take {share:.0%} of the limit"]
    evidence = lab.judge(record)["stale-gradients"].evidence
    first, last = float(evidence["loss_first"].value), float(evidence["loss_last"].value)
    if not last < 0.9 * first:
        return [f"on {WORKERS} real workers the loss goes from {first:.3g} to {last:.3g}: it does not learn"]
    return []
