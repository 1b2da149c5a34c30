"""Predictions of an all-reduce that are wrong somewhere, each refused; a right one accepted, ten times on a busy machine."""

import itertools
import math

import pytest
from answers import each

import labkit

pytestmark = pytest.mark.ranks
LAB = labkit.lab("start-here")

THE_FIRST_CASES = {
    (4 * 7_000_000_000, 64, 12e-6, 25e9),
    (2 * 1_300_000_000, 8, 5e-6, 300e9),
    (4 * 60_000, 2, 180e-6, 1.1e9),
    (1024, 32, 30e-6, 12.5e9),
    (4 * 25_000_000, 3, 250e-6, 0.9e9),
}


def right(n, w, a, b):
    return 2 * (w - 1) * a + 2 * (w - 1) / w * n / b, w * a * b


def written_otherwise(num_bytes, world_size, alpha_s, bytes_per_s):
    part_s = num_bytes / world_size / bytes_per_s
    crossover = alpha_s / (1 / world_size / bytes_per_s)
    return [sum([alpha_s + part_s] * (world_size - 1)) * 2, crossover]


def only_where(holds, other=lambda n, w, a, b: (a + n / b, a * b)):
    return lambda n, w, a, b: right(n, w, a, b) if holds(n, w, a, b) else other(n, w, a, b)


def seconds(formula):
    return lambda n, w, a, b: (formula(n, w, a, b), w * a * b)


def for_so_many_calls(number):
    calls = itertools.count()
    return lambda n, w, a, b: right(n, w, a, b) if next(calls) < number else (0.0, 0.0)


def a_table(n, w, a, b):
    return right(n, w, a, b) if (n, w, a, b) in THE_FIRST_CASES else (1.0, 1.0)


WRONG = {
    "a table of cases": a_table,
    "right for the first ten calls": for_so_many_calls(10),
    "right for the numbers of ranks in the table": only_where(lambda n, w, a, b: w in (2, 3, 8, 32, 64)),
    "right for powers of two": only_where(lambda n, w, a, b: w & (w - 1) == 0),
    "right for even numbers of ranks": only_where(lambda n, w, a, b: w % 2 == 0),
    "right for up to 64 ranks": only_where(lambda n, w, a, b: w <= 64),
    "right from 3 ranks on": only_where(lambda n, w, a, b: w > 2),
    "right for large messages": only_where(lambda n, w, a, b: n > 1000),
    "right for small messages": only_where(lambda n, w, a, b: n < 1e9),
    "right where bytes outnumber ranks": only_where(lambda n, w, a, b: n >= w),
    "right on slow links": only_where(lambda n, w, a, b: b < 1e11),
    "one hop": lambda n, w, a, b: (a + n / b, a * b),
    "a tree": seconds(lambda n, w, a, b: 2 * math.ceil(math.log2(w)) * (a + n / b)),
    "latency once": seconds(lambda n, w, a, b: a + 2 * (w - 1) / w * n / b),
    "no latency": seconds(lambda n, w, a, b: 2 * (w - 1) / w * n / b),
    "no bytes": seconds(lambda n, w, a, b: 2 * (w - 1) * a),
    "half of the ring": seconds(lambda n, w, a, b: right(n, w, a, b)[0] / 2),
    "the limit for many ranks": seconds(lambda n, w, a, b: 2 * (w - 1) * a + 2 * n / b),
    "whole bytes a part": seconds(lambda n, w, a, b: 2 * (w - 1) * (a + n // w / b)),
    "microseconds rounded": seconds(lambda n, w, a, b: round(right(n, w, a, b)[0], 6)),
    "crossover without ranks": lambda n, w, a, b: (right(n, w, a, b)[0], a * b),
    "crossover of whole kilobytes": lambda n, w, a, b: (right(n, w, a, b)[0], round(w * a * b / 1000) * 1000),
    "crossover of both ways": lambda n, w, a, b: (right(n, w, a, b)[0], 2 * (w - 1) * a * b),
}


@each(WRONG)
def test_a_wrong_prediction_is_refused(wrong):
    result = LAB.check(wrong)
    assert result.findings and not result.doubt


@pytest.mark.parametrize("answer", [right, written_otherwise])
def test_a_right_prediction_is_accepted_ten_times_on_a_busy_machine(answer, busy):
    assert [str(LAB.check(answer)) for _ in range(10)] == ["Solved: every check passed."] * 10


def test_the_cases_are_drawn_anew_and_a_seed_brings_them_again():
    wrong = WRONG["a tree"]
    first = LAB.check(wrong)
    assert str(LAB.check(wrong, seed=first.seed)) == str(first) and f"seed={first.seed}" in str(first)
    assert {LAB.check(wrong).seed for _ in range(3)} != {first.seed}
