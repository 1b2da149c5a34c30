"""Learning rates by wrong rules, each refused; right ones accepted, ten times on a busy machine."""

import itertools
import math

import pytest
from answers import each

import labkit
from labkit.labs.stale_gradients import exercise
from labkit.theory.delay import bisect, spectral_radius, stability_limit

pytestmark = pytest.mark.ranks
LAB = labkit.lab("stale-gradients")


def limit(delay):
    return 2 * math.sin(math.pi / (2 * (2 * delay + 1)))


def right(workers, sharpness):
    return 0.8 * limit(workers - 1) / sharpness


def bolder(workers, sharpness):
    return 0.95 * 2 * math.cos((workers - 1) * math.pi / (2 * workers - 1)) / sharpness


def timid(workers, sharpness):
    return 0.3 * stability_limit(workers - 1) / sharpness


THE_FIRST_CASES = {(8, 5.0), (2, 1.0), (4, 2.5), (16, 5.0), (8, 0.5)}
A_TABLE = {1: 2.0, 2: 1.0, 4: 0.445, 8: 0.209, 16: 0.101}


def by_table(workers, sharpness):
    nearest = min(A_TABLE, key=lambda known: abs(known - workers))
    return 0.8 * A_TABLE[nearest] / sharpness


def through_the_first_points(workers, sharpness):
    """A curve through the numbers of workers 2, 4, 8 and 16: near the limit there, and nowhere to rely on."""
    x = math.log(workers)
    points = {math.log(w): math.log(limit(w - 1)) for w in (2, 4, 8, 16)}
    terms = (y * math.prod((x - b) / (a - b) for b in points if b != a) for a, y in points.items())
    return 0.8 * math.exp(min(sum(terms), 50)) / sharpness


def where(holds, other):
    return lambda w, s: other(w, s) if holds(w, s) else right(w, s)


def for_so_many_calls(number):
    calls = itertools.count()
    return lambda w, s: right(w, s) if next(calls) < number else 1 / (w * s)


def rule(formula):
    return lambda w, s: formula(w) / s


WRONG = {
    "1/W": rule(lambda w: 1 / w),
    "half of 1/W": rule(lambda w: 0.5 / w),
    "as large a multiple of 1/W as is stable": rule(lambda w: 1.5 / w),
    "τ times W": rule(lambda w: 1 / max(1, (w - 1) * w)),
    "1/τ": rule(lambda w: 1 / max(1, w - 1)),
    "1/(τ + 1)²": rule(lambda w: 2 / w**2),
    "1/√W": rule(lambda w: 1 / math.sqrt(w)),
    "2/(1 + τ)": rule(lambda w: 0.8 * 2 / w),
    "the limit for many workers": rule(lambda w: 0.8 * math.pi / (2 * w)),
    "a small angle's sine": rule(lambda w: 0.6 * math.pi / (2 * w - 1)),
    "through the first points": through_the_first_points,
    "a table": by_table,
    "the first cases alone": where(lambda w, s: (w, s) not in THE_FIRST_CASES, lambda w, s: 1 / (w * s)),
    "the delay is W": rule(lambda w: 0.8 * limit(w)),
    "the delay is W/2": rule(lambda w: 0.8 * limit(w // 2)),
    "the delay is 7": rule(lambda w: 0.8 * limit(7)),
    "synchronous": rule(lambda w: 1.6),
    "without the curvature": lambda w, s: 0.8 * limit(w - 1),
    "the root of the curvature": lambda w, s: 0.8 * limit(w - 1) / math.sqrt(s),
    "constant": lambda w, s: 0.2,
    "on the limit": rule(lambda w: limit(w - 1)),
    "a tenth": rule(lambda w: 0.1 * limit(w - 1)),
    "right for up to 16 workers": where(lambda w, s: w > 16, lambda w, s: 1 / (w * s)),
    "right from 2 workers on": where(lambda w, s: w == 1, lambda w, s: 0.2 / s),
    "right for curvatures above 1": where(lambda w, s: s < 1, lambda w, s: right(w, 1.0)),
    "right for the first ten calls": for_so_many_calls(10),
    "another share for many workers": rule(lambda w: (0.9 if w < 50 else 0.6) * limit(w - 1)),
}


@each(WRONG)
def test_a_wrong_rule_is_refused(wrong):
    result = LAB.check(wrong)
    assert result.findings and not result.doubt


def by_iteration(workers, sharpness):
    """The limit without its formula: where the largest root leaves the unit circle."""
    workers = int(workers)
    return 0.8 * bisect(lambda rate: spectral_radius(workers - 1, rate) < 1, 4.0 / workers, steps=30) / sharpness


def test_a_limit_that_is_found_otherwise_is_right_too(monkeypatch):
    monkeypatch.setattr(exercise, "MOST_WORKERS", 40)  # else the polynomials are of degree 500
    assert LAB.check(by_iteration).passed


@pytest.mark.parametrize("answer", [right, bolder, timid])
def test_a_right_rule_is_accepted_on_a_busy_machine(answer, busy):
    assert str(LAB.check(answer)) == "Solved: every check passed."


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("answer", [right, bolder, timid])
def test_a_right_rule_is_accepted_ten_times_on_a_busy_machine(answer, busy):
    assert [str(LAB.check(answer)) for _ in range(10)] == ["Solved: every check passed."] * 10
