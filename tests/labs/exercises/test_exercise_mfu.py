"""Answers on quoted MFU figures that are wrong for some, each refused; the right ones accepted, on a busy machine too."""

import itertools
import math
import random

import pytest
from answers import each

import labkit
from labkit.labs.mfu import exercise
from labkit.labs.mfu.exercise import MISTAKES, Case, cases

pytestmark = pytest.mark.ranks
LAB = labkit.lab("mfu")


def rightly(case):
    active = case.weights - case.embedding - case.idle_experts
    return 6 * active * case.micro_batches * case.tokens / case.step_s / (case.devices * case.dense_flops)


def factors(case):
    """By mistake: how many times the right figure it makes."""
    active = case.weights - case.embedding - case.idle_experts
    return {
        "sparse peak": case.dense_flops / case.sparse_flops,
        "devices forgotten": case.devices,
        "recomputation counted": 8 / 6 if case.recomputed else 1,
        "total instead of active experts": 1 + case.idle_experts / active,
        "embeddings counted": 1 + case.embedding / active,
        "accumulation forgotten": 1 / case.micro_batches,
    }


def right(case):
    ratio = case.claimed / rightly(case)
    return min(factors(case).items(), key=lambda item: abs(math.log(ratio / item[1])))[0], rightly(case)


THE_LESSONS = dict(zip("ABCDEF", MISTAKES, strict=True))
TIMES = {"A": 2, "B": 1 / 4, "C": 6 / 8, "D": 13 / 47, "E": 34 / 50, "F": 4}


def by_name(case):
    return THE_LESSONS.get(case.name, MISTAKES[0]), TIMES.get(case.name, 1) * case.claimed


def asks_the_case(case):
    return getattr(case, "mistake", MISTAKES[0]), getattr(case, "right", case.claimed)


def reads_the_case(case):
    told = vars(case)
    return told.get("mistake", told.get("_mistake", MISTAKES[0])), told.get("right", told.get("_right", case.claimed))


def reads_the_lessons_answers(case):
    known = {one.case: (one.mistake, one.right) for one in exercise._examples()}
    return known.get(case, (MISTAKES[0], case.claimed))


def for_so_many_calls(number):
    calls = itertools.count()
    return lambda case: right(case) if next(calls) < number else (MISTAKES[0], case.claimed)


def never(mistake):
    def answer(case):
        found, value = right(case)
        return (MISTAKES[0] if found == mistake else found), value

    return answer


def value(formula):
    return lambda case: (right(case)[0], formula(case))


def by_what_there_is(case):
    """The first thing in the story that a mistake could have been made with."""
    present = {
        "accumulation forgotten": case.micro_batches > 1,
        "total instead of active experts": case.idle_experts > 0,
        "embeddings counted": case.embedding > 0,
        "recomputation counted": case.recomputed,
        "devices forgotten": case.claimed > 1,
    }
    return next((mistake for mistake, is_there in present.items() if is_there), "sparse peak"), rightly(case)


WRONG = {
    "asks the case for its answer": asks_the_case,
    "reads all that the case holds": reads_the_case,
    "by the lesson's names": by_name,
    "the lesson's answers out of the checker": reads_the_lessons_answers,
    "right for the first six calls": for_so_many_calls(6),
    "right for the first thirty calls": for_so_many_calls(30),
    "what the story mentions": by_what_there_is,
    **{f"never {mistake}": never(mistake) for mistake in MISTAKES[1:]},
    "sparse for any": lambda case: (MISTAKES[0], 2 * case.claimed),
    "the claim": value(lambda case: case.claimed),
    "half of a percent": value(lambda case: 100 * rightly(case)),
    "the sparse peak": value(lambda case: rightly(case) * case.dense_flops / case.sparse_flops),
    "one device": value(lambda case: rightly(case) * case.devices),
    "all weights": value(lambda case: rightly(case) * case.weights / (case.weights - case.embedding - case.idle_experts)),
    "one micro-batch": value(lambda case: rightly(case) / case.micro_batches),
    "recomputation in the figure": value(lambda case: rightly(case) * (8 / 6 if case.recomputed else 1)),
    "two FLOPs a weight": value(lambda case: rightly(case) / 3),
    "an H100 always": value(lambda case: rightly(case) * case.dense_flops / 989.4e12),
    "the sparse peak is always twice": value(lambda case: rightly(case) * case.dense_flops / (case.sparse_flops / 2)),
    "two mistakes at once": lambda case: (list(right(case)[:1]), rightly(case)),
}


@each(WRONG)
def test_a_wrong_answer_is_refused(wrong):
    result = LAB.check(wrong)
    assert result.findings and not result.doubt


def test_the_right_answers_are_accepted_ten_times_on_a_busy_machine(busy):
    assert [str(LAB.check(right)) for _ in range(10)] == ["Solved: every check passed."] * 10


def test_a_case_does_not_hold_its_answer_and_each_mistake_can_be_told_from_the_others():
    assert not {"mistake", "right"} & {name for name in dir(Case)}
    for seed in range(50):
        draw = random.Random(seed)
        for mistake in MISTAKES:
            drawn = exercise._drawn(draw, mistake)
            told, number = right(drawn.case)
            assert told == drawn.mistake == mistake and math.isclose(number, drawn.right) and 0 < number < 0.6


def test_the_lessons_six_cases_make_each_mistake_once():
    assert [right(case)[0] for case in cases()] == list(MISTAKES)
    assert all(math.isclose(right(case)[1], TIMES[case.name] * case.claimed, rel_tol=1e-3) for case in cases())
    assert all(0 < right(case)[1] < 0.6 for case in cases())
