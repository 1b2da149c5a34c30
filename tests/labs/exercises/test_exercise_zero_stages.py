"""Stages that are wrong for some cluster, each refused; the right ones accepted, ten times on a busy machine."""

import itertools
import random

import pytest
from answers import each

import labkit
from labkit.labs.zero_stages.exercise import CASES, drawn_cases
from labkit.theory.zero import GB, cheapest

pytestmark = pytest.mark.ranks
LAB = labkit.lab("zero-stages")


def takes(psi, w):
    return [16 * psi, 4 * psi + 12 * psi / w, 2 * psi + 14 * psi / w, 16 * psi / w]


def first(bytes_of_stages, room):
    return next((stage for stage, taken in enumerate(bytes_of_stages) if taken <= room), None)


def right(case):
    return first(takes(case.params, case.devices), (case.memory_gb - case.reserve_gb) * 1e9)


def by_the_library(case):
    best = cheapest(case.params, case.devices, case.memory_gb * GB, kept="mixed Adam", reserve_bytes=case.reserve_gb * GB)
    return None if best is None else best.stage


def by_name(case):
    return {"A": 0, "B": 2, "C": None, "D": 3}.get(case.name, 3)


def by_parameters(case):
    return {1.3e9: 0, 7e9: 2, 72e9: None, 34e9: 3}.get(case.params, 3)


def by_letter_that_it_begins_with(case):
    return by_name(type(case)(name=case.name[0], params=1, devices=1, memory_gb=1, reserve_gb=0))


def with_bytes(of_stages, room=lambda case: (case.memory_gb - case.reserve_gb) * 1e9):
    return lambda case: first(of_stages(case.params, case.devices), room(case))


def instead(**other):
    """Right, but for one stage in place of another: `_3=2` says 2 for 3."""
    swap = {int(name[1:]) if name != "none" else None: value for name, value in other.items()}
    return lambda case: swap.get(right(case), right(case))


def unless(holds, other=3):
    return lambda case: other if holds(case) else right(case)


def for_so_many_calls(number):
    calls = itertools.count()
    return lambda case: right(case) if next(calls) < number else 3


WRONG = {
    "by the case's name": by_name,
    "by its parameters": by_parameters,
    "by the first letter": by_letter_that_it_begins_with,
    "right for the first four calls": for_so_many_calls(4),
    "right for the first twenty calls": for_so_many_calls(20),
    "always 3": lambda case: 3,
    "always 0": lambda case: 0,
    "never 1": instead(_1=2),
    "never None": instead(none=3),
    "never 0": instead(_0=1),
    "2 and 3 swapped": instead(_2=3, _3=2),
    "without the reserve": with_bytes(takes, lambda case: case.memory_gb * 1e9),
    "GiB for GB": with_bytes(takes, lambda case: (case.memory_gb - case.reserve_gb) * 2**30),
    "the bytes of fp32": with_bytes(lambda psi, w: [16 * psi, 8 * psi + 8 * psi / w, 4 * psi + 12 * psi / w, 16 * psi / w]),
    "weights alone": with_bytes(lambda psi, w: [2 * psi, 2 * psi, 2 * psi, 2 * psi / w]),
    "no copy of the weights": with_bytes(
        lambda psi, w: [12 * psi, 4 * psi + 8 * psi / w, 2 * psi + 10 * psi / w, 12 * psi / w]
    ),
    "gradients stay whole in stage 2": with_bytes(
        lambda psi, w: [16 * psi, 4 * psi + 12 * psi / w, 4 * psi + 12 * psi / w, 16 * psi / w]
    ),
    "all divided by the devices": with_bytes(lambda psi, w: [16 * psi / w] * 4),
    "the last that fits": lambda case: next(
        (s for s in (3, 2, 1, 0) if takes(case.params, case.devices)[s] <= (case.memory_gb - case.reserve_gb) * 1e9), None
    ),
    "eight devices for any": lambda case: first(takes(case.params, 8), (case.memory_gb - case.reserve_gb) * 1e9),
    "wrong on one device": unless(lambda case: case.devices == 1),
    "wrong on an odd number of devices": unless(lambda case: case.devices % 2 == 1 and case.devices > 1),
    "wrong on more than 100 devices": unless(lambda case: case.devices > 100),
    "wrong from 100 B parameters on": unless(lambda case: case.params >= 1e11),
}


@each(WRONG)
def test_a_wrong_stage_is_refused(wrong):
    result = LAB.check(wrong)
    assert result.findings and not result.doubt


@pytest.mark.parametrize("answer", [right, by_the_library])
def test_the_right_stages_are_accepted_ten_times_on_a_busy_machine(answer, busy):
    assert [str(LAB.check(answer)) for _ in range(10)] == ["Solved: every check passed."] * 10


def test_each_answer_is_drawn_often_and_no_case_lies_on_a_bound():
    for seed in range(50):
        cases = drawn_cases(random.Random(seed))
        answers = [right(case) for case in cases]
        assert all(answers.count(answer) >= 7 for answer in (0, 1, 2, 3, None))
        assert answers == [by_the_library(case) for case in cases]
        assert not {case.name for case in cases} & {case.name for case in CASES}
