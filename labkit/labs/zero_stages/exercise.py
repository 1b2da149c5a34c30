"""By the paper's arithmetic: which is the cheapest stage that fits? Each wrong answer is explained."""

from __future__ import annotations

import operator
import random
import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...errors import LabkitError, shown
from ...theory.zero import GB, STAGE_NAMES, STAGES, cheapest, state, traffic
from ...words import plural
from ..checking import Question, ask, first_of, log_uniform
from ..opened import OpenedLab


@dataclass(frozen=True, kw_only=True)
class Case:
    """One cluster and one model, trained with Adam in mixed precision.

    Attributes:
        name: of the case; the check gives other names.
        params: number of parameters Ψ.
        devices: W.
        memory_gb: of each device, in units of 1e9 bytes.
        reserve_gb: of it for activations and buffers, which no stage divides.
    """

    name: str
    params: float
    devices: int
    memory_gb: float
    reserve_gb: float

    @property
    def story(self) -> str:
        return (
            f"{self.params / 1e9:g} B parameters, {plural(self.devices, 'device')} of {self.memory_gb:.5g} GB, "
            f"{self.reserve_gb:.5g} GB of each for activations"
        )


CASES = (
    Case(name="A", params=1.3e9, devices=8, memory_gb=40, reserve_gb=10),
    Case(name="B", params=7e9, devices=16, memory_gb=40, reserve_gb=15),
    Case(name="C", params=72e9, devices=8, memory_gb=80, reserve_gb=10),
    Case(name="D", params=34e9, devices=16, memory_gb=80, reserve_gb=20),
)


SMALLEST_MARGIN, NEAR = 0.01, 0.05
"""How near to what a stage takes the memory of a drawn case is, at the least and where it is near: roundings, and mistakes
as small as 2**30 for 1e9, lie on either side."""

LIKELY = 2, 2, 3, 4, 8, 16, 64, 256, 1024


def drawn_cases(draw: random.Random) -> list[Case]:
    """Cases with other names and numbers each time: each answer at least seven times, near each bound and far from it.

    What one device can do is asked too: all of it, or nothing.
    """
    several = [_drawn(draw, fits, near) for fits in (*STAGES, None) for near in ("low", "high", "between", *["any"] * 4)]
    return several + [_drawn(draw, fits, "any", devices=1) for fits in (0, None)]


def _drawn(draw: random.Random, fits: int | None, near: str, devices: int | None = None) -> Case:
    """A case whose lowest stage that fits is `fits`; one device shards nothing."""
    params = float(f"{log_uniform(draw, 1e8, 3e12):.3g}")
    devices = devices or max(2, draw.choice((*LIKELY, draw.randint(2, 40), 2 * draw.randint(1, 300) + 1)))
    takes = [state(params, devices, stage, "mixed Adam").total / GB for stage in STAGES]
    low = takes[fits] if fits is not None else takes[3] / 8
    high = takes[3] if fits is None else takes[fits - 1] if fits else 4 * takes[0]
    inside = (low * (1 + SMALLEST_MARGIN), high * (1 - SMALLEST_MARGIN))
    if near == "low":
        inside = (inside[0], min(inside[1], low * (1 + NEAR)))
    elif near == "high":
        inside = (max(inside[0], high * (1 - NEAR)), inside[1])
    room = log_uniform(draw, *inside)
    reserve = room * draw.uniform(0.05, 1.5)
    name = "".join(draw.choices(string.ascii_uppercase, k=2)) + str(draw.randint(10, 99))
    return Case(name=name, params=params, devices=devices, memory_gb=room + reserve, reserve_gb=reserve)


def check(function: Callable[[Case], Any], lab: OpenedLab, seed: int) -> list[str]:
    """What is wrong with the learner's answers, and why; the cases are drawn, beside those of the lesson.

    The function runs in a process of its own, so that one that hangs or crashes does no harm here.
    """
    draw = random.Random(seed)
    cases = [*CASES, *drawn_cases(draw)]
    questions = [Question(f"case {case.name}: {case.story}", (case,)) for case in cases]
    try:
        answers = ask(function, questions, lab, draw)
    except LabkitError as error:
        return [f"your function did not finish: {error}"]
    findings = []
    for case, answer in zip(cases, answers, strict=True):
        try:
            stage = None if answer is None else operator.index(answer)  # numbers of numpy and torch, too
        except TypeError:
            stage = -1
        if isinstance(answer, bool) or stage not in (*STAGES, None):
            return [f"case {case.name}: return 0, 1, 2, 3 or None; given {shown(answer)}"]
        expected = _right(case)
        if stage != expected:
            findings.append(f"case {case.name} ({case.story}): {_why(case, stage, expected)}")
    return first_of(findings)


def _right(case: Case) -> int | None:
    """The cheapest stage that fits; of stages that send the same, the lowest."""
    best = cheapest(case.params, case.devices, case.memory_gb * GB, kept="mixed Adam", reserve_bytes=case.reserve_gb * GB)
    return None if best is None else best.stage


def _why(case: Case, answer: int | None, expected: int | None) -> str:
    room = float(f"{case.memory_gb - case.reserve_gb:.5g}")
    if answer is None:
        assert expected is not None
        takes = state(case.params, case.devices, expected, "mixed Adam").total / GB
        return f"something fits: one stage takes {takes:.4g} GB of the {room:g} that are free"
    takes = state(case.params, case.devices, answer, "mixed Adam").total / GB
    name = STAGE_NAMES[answer]
    if takes > room:
        return f"{name} takes {takes:.4g} GB of state, and {room:g} are free: it does not fit"
    assert expected is not None  # the answer fits, so something does
    sends, needs = (traffic(case.params, case.devices, stage) for stage in (answer, expected))
    more = sends / needs if needs else 1  # one device sends nothing
    if more > 1:
        return f"{name} fits, but sends {more:.2f} times what {STAGE_NAMES[expected]} sends, which fits too"
    return f"{name} fits, but {STAGE_NAMES[expected]} fits too, sends no more, and is simpler"
