"""Four cases, by the paper's arithmetic: which is the cheapest stage that fits? Each wrong answer is explained."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...errors import shown
from ...record.zero import GB, STAGE_NAMES, cheapest, state, traffic


@dataclass(frozen=True, kw_only=True)
class Case:
    """One cluster and one model, trained with Adam in mixed precision.

    Attributes:
        name: to answer by.
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
            f"{self.params / 1e9:g} B parameters, {self.devices} devices of {self.memory_gb:g} GB, {self.reserve_gb:g} GB "
            "of each for activations"
        )


CASES = (
    Case(name="A", params=1.3e9, devices=8, memory_gb=40, reserve_gb=10),
    Case(name="B", params=7e9, devices=16, memory_gb=40, reserve_gb=15),
    Case(name="C", params=72e9, devices=8, memory_gb=80, reserve_gb=10),
    Case(name="D", params=34e9, devices=16, memory_gb=80, reserve_gb=20),
)


def right(case: Case) -> int | None:
    """The cheapest stage that fits; of stages that send the same, the lowest."""
    best = cheapest(case.params, case.devices, case.memory_gb * GB, kept="mixed Adam", reserve_bytes=case.reserve_gb * GB)
    return None if best is None else best.stage


def check(function: Callable[[Case], Any]) -> list[str]:
    """What is wrong with the learner's answers, and why."""
    findings = []
    for case in CASES:
        try:
            answer = function(case)
        except (Exception, SystemExit) as error:  # the learner's code
            return [f"case {case.name}: your function raised {type(error).__name__}: {error}"]
        try:
            stage = None if answer is None else operator.index(answer)  # numbers of numpy and torch, too
        except TypeError:
            stage = -1
        if isinstance(answer, bool) or stage not in (0, 1, 2, 3, None):
            return [f"case {case.name}: return 0, 1, 2, 3 or None; given {shown(answer)}"]
        expected = right(case)
        if stage != expected:
            findings.append(f"case {case.name} ({case.story}): {_why(case, stage, expected)}")
    return findings


def _why(case: Case, answer: int | None, expected: int | None) -> str:
    room = case.memory_gb - case.reserve_gb
    if answer is None:
        assert expected is not None
        takes = state(case.params, case.devices, expected, "mixed Adam").total / GB
        return f"something fits: one stage takes {takes:.1f} GB of the {room:g} that are free"
    takes = state(case.params, case.devices, answer, "mixed Adam").total / GB
    name = STAGE_NAMES[answer]
    if takes > room:
        return f"{name} takes {takes:.1f} GB of state, and {room:g} are free: it does not fit"
    assert expected is not None  # the answer fits, so something does
    more = traffic(case.params, case.devices, answer) / traffic(case.params, case.devices, expected)
    if more > 1:
        return f"{name} fits, but sends {more:.2f} times what {STAGE_NAMES[expected]} sends, which fits too"
    return f"{name} fits, but {STAGE_NAMES[expected]} fits too, sends no more, and is simpler"
