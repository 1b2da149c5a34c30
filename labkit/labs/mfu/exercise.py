"""MFU figures as people quote them, each with one mistake. The learner's function names it and gives the right value.

A case holds what was run and what was claimed. Which mistake was made is not in it: the check draws a case, makes the
mistake, and keeps to itself which one it was.
"""

from __future__ import annotations

import itertools
import math
import random
import string
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ...errors import LabkitError, shown
from ...theory.flops import NO_ATTENTION, flops_per_token, mfu
from ..checking import Question, ask, first_of, log_uniform
from ..opened import OpenedLab

MISTAKES = (
    "sparse peak",
    "devices forgotten",
    "recomputation counted",
    "total instead of active experts",
    "embeddings counted",
    "accumulation forgotten",
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One quoted figure, and what was run.

    Attributes:
        name: of the case; the check gives other names.
        claimed: the quoted MFU, as a fraction.
        weights: all weights.
        embedding: of these, in the input embedding, which is looked up and not multiplied.
        idle_experts: of these, in experts that a token does not visit.
        devices: that shared the work.
        dense_flops, sparse_flops: FLOP/s of one device by the datasheet, without and with structured sparsity.
        micro_batches: accumulated in an optimizer step.
        tokens: of one micro-batch, on all devices together.
        step_s: seconds of an optimizer step.
        recomputed: whether the backward pass computes the whole forward pass again.
    """

    name: str
    claimed: float = math.nan
    weights: float
    embedding: float = 0.0
    idle_experts: float = 0.0
    devices: int
    dense_flops: float
    sparse_flops: float
    micro_batches: int = 1
    tokens: int
    step_s: float
    recomputed: bool = False

    @property
    def story(self) -> str:
        parts = [f"{self.weights / 1e9:.4g}e9 weights"]
        if self.embedding:
            parts.append(f"{self.embedding / 1e9:.4g}e9 of them an input embedding, which is looked up and not multiplied")
        if self.idle_experts:
            parts.append(f"{self.idle_experts / 1e9:.4g}e9 of them in experts that a token does not visit")
        peak = f"{self.dense_flops / 1e12:.4g} TFLOP/s dense, {self.sparse_flops / 1e12:.4g} with sparsity"
        parts.append(f"{self.devices} device{'s' if self.devices > 1 else ''} of {peak}")
        step = f"{self.tokens:,} tokens on all devices together"
        if self.micro_batches > 1:
            step = f"{self.micro_batches} micro-batches of {step}"
        parts.append(f"an optimizer step of {step} takes {self.step_s:.4g} s")
        return ", ".join(parts) + (", with full recomputation" if self.recomputed else "")


@dataclass(frozen=True)
class _Quoted:
    """A case, and what the learner's function is not told of it."""

    case: Case
    mistake: str
    right: float


def _flops_and_rate(case: Case) -> tuple[float, float]:
    """(FLOPs a token by 6N, tokens a second)."""
    num_params = case.weights - case.embedding - case.idle_experts
    return flops_per_token(num_params, convention=NO_ATTENTION), case.micro_batches * case.tokens / case.step_s


def _right(case: Case) -> float:
    flops, rate = _flops_and_rate(case)
    return mfu(tokens_per_s=rate, flops_per_token=flops, peak_flops=case.dense_flops, num_devices=case.devices)


def _with_mistake(case: Case, mistake: str) -> float:
    """The figure that a mistake makes of a case; the right one where the case has nothing to make it with."""
    flops, rate = _flops_and_rate(case)
    peak, devices = case.dense_flops, case.devices
    match mistake:
        case "sparse peak":
            peak = case.sparse_flops
        case "devices forgotten":
            devices = 1
        case "recomputation counted":
            flops *= 8 / 6 if case.recomputed else 1
        case "total instead of active experts":
            flops += 6 * case.idle_experts
        case "embeddings counted":
            flops += 6 * case.embedding
        case "accumulation forgotten":
            rate /= case.micro_batches
    return mfu(tokens_per_s=rate, flops_per_token=flops, peak_flops=peak, num_devices=devices)


def _quoted(case: Case, mistake: str) -> _Quoted:
    return _Quoted(replace(case, claimed=_with_mistake(case, mistake)), mistake, _right(case))


H100: dict[str, Any] = {"dense_flops": 989.4e12, "sparse_flops": 1978.9e12}
A100: dict[str, Any] = {"dense_flops": 312e12, "sparse_flops": 624e12}


def _examples() -> list[_Quoted]:
    """The lesson's six figures: each mistake once."""
    told = (
        Case(name="A", weights=7e9, devices=8, tokens=96_000, step_s=1.0, **H100),
        Case(name="B", weights=1.3e9, devices=4, tokens=60_000, step_s=1.0, **A100),
        Case(name="C", weights=13e9, devices=16, tokens=24_000, step_s=1.0, recomputed=True, **A100),
        Case(name="D", weights=47e9, idle_experts=34e9, devices=8, tokens=22_000, step_s=1.0, **H100),
        Case(name="E", weights=0.5e9, embedding=0.16e9, devices=1, tokens=48_000, step_s=1.0, **A100),
        Case(name="F", weights=7e9, devices=8, micro_batches=4, tokens=8 * 8 * 2048, step_s=6.0, **H100),
    )
    return [_quoted(case, mistake) for case, mistake in zip(told, MISTAKES, strict=True)]


def cases() -> tuple[Case, ...]:
    """The lesson's six cases, to read before writing the function."""
    return tuple(quoted.case for quoted in _examples())


OF_EACH = 6
"""Drawn cases of each mistake."""

CLOSE = 0.01
"""An MFU within this of the right one is right: people round."""

APART = 1.08
"""The figures that two mistakes make of one case lie at least so many times apart, and so does each from the right one."""


def _drawn(draw: random.Random, mistake: str) -> _Quoted:
    """A case in which most mistakes could have been made, and one was."""
    while True:
        case = _any_case(draw)
        right = _right(case)
        could = {each: figure for each in MISTAKES if (figure := _with_mistake(case, each)) != right}
        figures = [right, *could.values()]
        if mistake in could and all(_apart(a, b) for a, b in itertools.combinations(figures, 2)):
            return _quoted(case, mistake)


def _apart(a: float, b: float) -> bool:
    return max(a, b) >= APART * min(a, b)


def _any_case(draw: random.Random) -> Case:
    active = log_uniform(draw, 1e8, 2e11)
    embedding = active * draw.choice((0, draw.uniform(0.1, 0.6)))
    idle = active * draw.choice((0, draw.uniform(0.3, 9)))
    dense = draw.choice((312e12, 989.4e12, log_uniform(draw, 5e13, 5e15)))
    devices, micro_batches = (
        draw.choice((1, 2, 3, 8, 24, 64, draw.randint(2, 600))),
        draw.choice((1, 2, 4, draw.randint(3, 40))),
    )
    tokens = devices * draw.randint(1, 16) * draw.choice((512, 1024, 2048, 8192))
    step_s = 6 * active * tokens * micro_batches / (devices * dense * draw.uniform(0.05, 0.58))
    return Case(
        name="".join(draw.choices(string.ascii_uppercase, k=2)) + str(draw.randint(10, 99)),
        weights=active + embedding + idle,
        embedding=embedding,
        idle_experts=idle,
        devices=devices,
        dense_flops=dense,
        sparse_flops=dense * draw.choice((2.0, 4.0)),
        micro_batches=micro_batches,
        tokens=tokens,
        step_s=step_s,
        recomputed=draw.random() < 0.5,
    )


def check(answers: Callable[[Case], Any], lab: OpenedLab, seed: int) -> list[str]:
    """What is wrong with the learner's answers, for the lesson's cases and for others that are drawn.

    The function runs in a process of its own, so that one that hangs or crashes does no harm here.

    Args:
        answers: function of a Case that returns (the mistake, one of MISTAKES; the right MFU as a fraction).
    """
    draw = random.Random(seed)
    quoted = [*_examples(), *(_drawn(draw, mistake) for mistake in MISTAKES for _ in range(OF_EACH))]
    questions = [Question(f"case {one.case.name}: {one.case.story}", (one.case,)) for one in quoted]
    try:
        given = ask(answers, questions, lab, draw)
    except LabkitError as error:
        return [f"your function did not finish: {error}"]
    findings = []
    for one, answer in zip(quoted, given, strict=True):
        if not (isinstance(answer, (tuple, list)) and len(answer) == 2):
            return [f"case {one.case.name}: return (mistake, right MFU); given {shown(answer)}"]
        slips = _slips(one, *answer)
        if slips:
            told = f"{one.case.story}; claimed: {one.case.claimed:.1%}"
            findings.append(f"case {one.case.name}: {'; '.join(slips)} ({told})")
    return first_of(findings)


def _slips(one: _Quoted, mistake: Any, value: Any) -> list[str]:
    """What is wrong with one answer."""
    findings = []
    if not isinstance(mistake, str) or mistake not in MISTAKES:
        findings.append(f"{shown(mistake)} is none of: {', '.join(MISTAKES)}")
    elif mistake != one.mistake:
        findings.append(f"it is not {mistake!r}")
    number = isinstance(value, (int, float)) and abs(value) < 1e6  # a whole number may be larger than any float
    if not number or not math.isclose(value, one.right, rel_tol=CLOSE):
        hint = ", as a fraction and not a percentage" if number and value > 1 else ""
        findings.append(f"the right MFU is not {shown(value)}{hint}")
    return findings
