"""Six MFU figures as people quote them, each with one mistake. The learner names it and gives the right value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...errors import shown
from ...record.flops import NO_ATTENTION, flops_per_token, mfu

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
    """One quoted figure.

    Attributes:
        name: to answer by.
        story: what was run and what was claimed.
        claimed: the quoted MFU.
        mistake: which of MISTAKES it makes.
        right: the MFU by 6N and the dense peak.
    """

    name: str
    story: str
    claimed: float
    mistake: str
    right: float


def _mfu(params: float, tokens_per_s: float, devices: int, peak: float) -> float:
    flops = flops_per_token(params, convention=NO_ATTENTION)
    return mfu(tokens_per_s=tokens_per_s, flops_per_token=flops, peak_flops=peak, num_devices=devices)


def cases() -> tuple[Case, ...]:
    """The six cases, each figure computed from its story."""
    h100, a100 = 989.4e12, 312e12
    return (
        Case(
            name="A",
            story="7e9 matmul weights, 8 devices, 96,000 tokens/s in all, bf16. The datasheet says 1,979 TFLOP/s for bf16, "
            "with a footnote on sparsity; dense is 989.4.",
            claimed=_mfu(7e9, 96_000, 8, 2 * h100),
            mistake="sparse peak",
            right=_mfu(7e9, 96_000, 8, h100),
        ),
        Case(
            name="B",
            story="1.3e9 matmul weights on 4 devices of 312 TFLOP/s dense. The log of one process says 60,000 tokens/s, "
            "summed over all four.",
            claimed=_mfu(1.3e9, 60_000, 1, a100),
            mistake="devices forgotten",
            right=_mfu(1.3e9, 60_000, 4, a100),
        ),
        Case(
            name="C",
            story="13e9 matmul weights, 16 devices of 312 TFLOP/s dense, full recomputation, 24,000 tokens/s in all. "
            "The team counts 8 FLOPs a weight, since that is what the hardware does.",
            claimed=_mfu(13e9, 24_000, 16, a100) * 8 / 6,
            mistake="recomputation counted",
            right=_mfu(13e9, 24_000, 16, a100),
        ),
        Case(
            name="D",
            story="A mixture of experts with 47e9 matmul weights, 13e9 of them at work for a token; 8 devices of 989.4 "
            "TFLOP/s dense, 22,000 tokens/s in all.",
            claimed=_mfu(47e9, 22_000, 8, h100),
            mistake="total instead of active experts",
            right=_mfu(13e9, 22_000, 8, h100),
        ),
        Case(
            name="E",
            story="0.5e9 weights in all, of which the input embedding, which is looked up and not multiplied, is 0.16e9; "
            "one device of 312 TFLOP/s dense, 48,000 tokens/s.",
            claimed=_mfu(0.5e9, 48_000, 1, a100),
            mistake="embeddings counted",
            right=_mfu(0.34e9, 48_000, 1, a100),
        ),
        Case(
            name="F",
            story="7e9 matmul weights, 8 devices of 989.4 TFLOP/s dense. An optimizer step takes "
            "4.0 s: it accumulates 4 micro-batches of 8 x 2,048 tokens on each device. The team divides one micro-batch's "
            "tokens by the step's time.",
            claimed=_mfu(7e9, 8 * 8 * 2048 / 4.0, 8, h100),
            mistake="accumulation forgotten",
            right=_mfu(7e9, 4 * 8 * 8 * 2048 / 4.0, 8, h100),
        ),
    )


def check(answers: Callable[[Case], Any]) -> list[str]:
    """What is wrong with the learner's answers.

    Args:
        answers: function of a Case that returns (the mistake, one of MISTAKES; the right MFU as a fraction).
    """
    findings = []
    for case in cases():
        try:
            answer = answers(case)
        except (Exception, SystemExit) as error:  # the learner's code
            return [f"case {case.name}: your function raised {type(error).__name__}: {error}"]
        if not (isinstance(answer, (tuple, list)) and len(answer) == 2):
            return [f"case {case.name}: return (mistake, right MFU); given {shown(answer)}"]
        mistake, value = answer
        if not isinstance(mistake, str) or mistake not in MISTAKES:
            findings.append(f"case {case.name}: {shown(mistake)} is none of: {', '.join(MISTAKES)}")
        elif mistake != case.mistake:
            findings.append(f"case {case.name}: it is not {mistake!r}")
        number = isinstance(value, (int, float)) and abs(value) < 1e6  # a whole number may be larger than any float
        if not number or not math.isclose(value, case.right, rel_tol=0.01):
            hint = ", as a fraction and not a percentage" if number and value > 1 else ""
            findings.append(f"case {case.name}: the right MFU is not {shown(value)}{hint}")
    return findings
