"""Noise blames nobody, and a slow rank is found, wherever and whenever it is slow."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.detect.spread import median_interval, slow_ranks

from ..noise import healthy, slowed
from ..quick import quick

SLOW = 1.5


@pytest.mark.parametrize("first", range(0, 2000, 50))
def test_of_two_thousand_noisy_runs_of_equal_ranks_none_has_a_slow_one(first):
    seeds = range(first, first + 50)
    assert not [seed for seed in seeds if slow_ranks(healthy(np.random.default_rng(seed)), times=SLOW)[0].proven]


def test_nor_has_one_where_ranks_are_late_by_a_millisecond_over_a_few_steps():
    """What a rank that shares a core is late by; a constant share of the step once accused it."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        late = np.zeros((4, 2))
        late[:, 1] = 0.001 * rng.lognormal(0, 0.3, 4)
        assert not slow_ranks(late, least_s=0.15 * 0.003, whole_s=np.full(4, 0.003))[0].matters


@pytest.mark.parametrize(
    ("ranks", "steps", "how"),
    [
        (2, 100, {"times": 8, "share": 0.4}),
        (4, 100, {"times": 8, "share": 0.4}),
        (4, 200, {"times": 50, "share": 0.1}),
        (2, 300, {"times": 50, "share": 0.1}),
        (4, 120, {"times": 4, "begin": 60}),
        (2, 100, {"times": 4, "begin": 60}),
        (3, 20, {"times": 4}),
        (8, 40, {"times": 2}),
    ],
)
def test_a_slow_rank_is_found_whichever_it_is_and_from_the_step_on_from_which_it_is_slow(ranks, steps, how):
    found = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        begin = how.get("begin", 0) and int(rng.integers(0.3 * steps, how["begin"] + 1))
        seconds, rank = slowed(rng, ranks=ranks, steps=steps, **how | {"begin": begin})
        worst = slow_ranks(seconds, times=SLOW)[0]
        assert worst.rank == rank and worst.matters
        at_the_latest = begin + 10 / how.get("share", 1.0)
        assert begin <= worst.begin <= at_the_latest and worst.times == pytest.approx(how["times"], rel=0.2)
        found += worst.proven
    assert found >= 48


def test_a_rank_that_is_struck_too_seldom_to_tell_is_not_blamed_and_not_cleared():
    rng = np.random.default_rng(0)
    seconds, _ = slowed(rng, ranks=2, steps=40, times=20, share=0.1)
    worst = slow_ranks(seconds, times=SLOW)[0]
    assert worst.matters and not worst.proven and not worst.by_turns


def test_two_slow_ranks_of_four_are_both_found_and_steps_that_are_long_on_all_make_none_slow():
    seconds = np.full((40, 4), 0.02)
    seconds[:, 1:3] *= 3
    assert [one.proven for one in slow_ranks(seconds, times=SLOW)[:2]] == [True, True]
    assert not slow_ranks(np.tile(np.linspace(0.01, 0.1, 40)[:, None], 3), times=SLOW)[0].matters


@pytest.mark.parametrize("count", [5, 6, 9, 30, 200])
def test_the_interval_holds_the_median_nearly_always(count):
    rng = np.random.default_rng(count)
    outside = 0
    for _ in range(100):
        low, high = median_interval(rng.lognormal(0, 1, count))
        outside += not low <= 1.0 <= high
    assert outside / 100 <= max(0.05, 2 * 0.5**count) + 0.05


NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60)


@quick
@given(values=NUMBERS, chance=st.floats(0.001, 0.5))
def test_the_medians_interval_leaves_out_as_many_on_either_side_as_the_chance_allows_and_no_more(values, chance):
    """By counting: the true median lies below all but k values with a chance of P(Binomial(n, 1/2) <= k)."""
    ordered, count = sorted(values), len(values)
    low, high = median_interval(values, chance)
    assert low <= float(np.median(values)) <= high

    def missed(left_out):
        """The chance that the median is outside of what is left, on either side."""
        return 2 * sum(Fraction(math.comb(count, k), 2**count) for k in range(left_out + 1))

    most = max((k for k in range(count // 2) if missed(k) <= Fraction(chance)), default=0)
    assert (low, high) == (ordered[most], ordered[count - 1 - most])


@quick
@given(values=NUMBERS, draw=st.randoms())
def test_the_medians_interval_knows_no_order_of_the_values_and_turns_with_their_sign(values, draw):
    low, high = median_interval(values)
    assert median_interval(draw.sample(values, len(values))) == (low, high)
    assert median_interval([-value for value in values]) == (-high, -low)
