"""The solution that a learner is shown passes the check that the learner's own answer meets, in every lab."""

import re

import pytest
from answers import written

from labkit import labs
from labkit.facade import Lab

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(600)]

SOLVED = [spec.slug for spec in labs.specs() if spec.exercise.help is not None]


def answer_of(code: str, signature: str):
    """What the code defines under the name that the exercise asks for."""
    wanted = re.search(r"(?:def|class) (\w+)", signature)
    assert wanted, signature
    return written(code, wanted[1])


@pytest.mark.parametrize("slug", SOLVED)
def test_the_solution_that_is_shown_is_one(slug):
    lab = Lab(labs.spec(slug))
    result = lab.check(answer_of(lab.solution().code, lab.spec.exercise.signature))
    assert not result.findings, result


def test_every_lab_shows_one():
    assert len(SOLVED) == len(labs.specs())


def test_a_wrong_solution_would_be_noticed():
    lab = Lab(labs.spec("start-here"))
    wrong = lab.solution().code.replace("world_size - 1", "world_size")
    assert wrong != lab.solution().code
    assert lab.check(answer_of(wrong, lab.spec.exercise.signature)).findings
