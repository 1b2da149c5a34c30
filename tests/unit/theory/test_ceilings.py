"""Arrays in, numbers out: what was put in comes back, and what cannot be known is refused."""

import numpy as np
import pytest

from labkit.errors import UsageError
from labkit.theory.ceilings import (
    all_reduce_s,
    attainable,
    crossover_bytes,
    fit_link,
    matmul_work,
    ridge,
    roofline_s,
    timing,
)

SIZES = 1024 * 4 ** np.arange(8)


def times(alpha_s, bytes_per_s, ranks):
    return np.array([all_reduce_s(size, ranks, alpha_s, bytes_per_s) for size in SIZES])


def test_the_spread_is_what_the_median_repeat_took_beyond_the_best():
    found = timing([4.0, 2.0, 3.0])
    assert (found.best_s, found.median_s, found.repeats) == (2.0, 3.0, 3)
    assert found.spread == pytest.approx(1 / 3)
    assert timing([1.0, 1.0]).spread == 0


@pytest.mark.parametrize("seconds", [[], [0.0, 1.0], [-1.0], [float("nan")], [float("inf")]])
def test_repeats_that_took_no_time_are_refused(seconds):
    with pytest.raises(UsageError):
        timing(seconds)


@pytest.mark.parametrize("ranks", [2, 3, 8, 64])
@pytest.mark.parametrize(("alpha_s", "bytes_per_s"), [(200e-6, 1e9), (5e-6, 100e9), (2e-3, 0.05e9)])
def test_a_link_without_noise_gives_its_latency_and_bandwidth_back(ranks, alpha_s, bytes_per_s):
    fit = fit_link(SIZES, times(alpha_s, bytes_per_s, ranks), ranks)
    assert fit.alpha_s == pytest.approx(alpha_s, rel=1e-9) and fit.bytes_per_s == pytest.approx(bytes_per_s, rel=1e-9)
    assert fit.residual_max < 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_with_a_tenth_of_noise_they_come_back_within_a_quarter_and_the_residuals_say_the_noise(seed):
    noise = np.exp(np.random.default_rng(seed).normal(0, 0.1, len(SIZES)))
    fit = fit_link(SIZES, times(200e-6, 1e9, 4) * noise, 4)
    assert fit.alpha_s == pytest.approx(200e-6, rel=0.25) and fit.bytes_per_s == pytest.approx(1e9, rel=0.25)
    assert 0.01 < fit.residual_max < 0.4
    assert np.allclose(fit.predicted_s, fit.measured_s * (1 + fit.residuals))


def test_each_size_counts_alike_however_long_it_takes():
    """An absolute fit would follow the largest message; here a shift of the largest leaves the latency where it is."""
    seconds = times(200e-6, 1e9, 2)
    seconds[-1] *= 1.5
    assert fit_link(SIZES, seconds, 2).alpha_s == pytest.approx(200e-6, rel=0.1)


def test_neither_number_falls_below_zero():
    falling = np.linspace(2e-3, 1e-3, len(SIZES))  # larger messages took less time
    fit = fit_link(SIZES, falling, 2)
    assert fit.alpha_s > 0 and fit.s_per_byte == 0 and fit.bytes_per_s is None
    pure = SIZES / 1e9
    assert fit_link(SIZES, pure, 2).alpha_s == pytest.approx(0, abs=1e-12)
    steeper = (SIZES / 1e9) ** 1.2
    assert fit_link(SIZES, steeper, 2).alpha_s >= 0


def test_sizes_may_come_in_any_order():
    seconds = times(200e-6, 1e9, 2)
    fit = fit_link(SIZES[::-1], seconds[::-1], 2)
    assert fit.sizes.tolist() == SIZES.tolist() and fit.measured_s.tolist() == seconds.tolist()


@pytest.mark.parametrize(
    ("sizes", "seconds", "ranks", "said"),
    [
        ([1024, 4096], [1e-3, 2e-3], 2, "needs 3 different ones"),
        ([1024, 1024, 4096], [1e-3, 1e-3, 2e-3], 2, "2 message size"),
        ([1024, 4096, 16384], [1e-3, 2e-3], 2, "3 sizes and 2 times"),
        ([1024, 4096, 16384], [1e-3, 0.0, 2e-3], 2, "must be above 0"),
        ([1024, 4096, 16384], [1e-3, float("nan"), 2e-3], 2, "must be above 0 and finite; given nan"),
        ([1024, 4096, 16384], [1e-3, 1e-3, 2e-3], 1, "1 rank sends nothing"),
    ],
)
def test_what_no_line_can_be_drawn_through_is_refused(sizes, seconds, ranks, said):
    with pytest.raises(UsageError, match=said):
        fit_link(sizes, seconds, ranks)


def test_the_ring_formula_in_numbers_and_its_limit():
    assert all_reduce_s(1e9, 2, 0.0, 1e9) == pytest.approx(1.0)  # 2(W-1)/W = 1
    assert all_reduce_s(1e9, 4, 1e-3, 1e9) == pytest.approx(6e-3 + 1.5)
    assert all_reduce_s(1e9, 10_000, 0.0, 1e9) == pytest.approx(2.0, rel=1e-3)  # T = 2 D / B
    assert all_reduce_s(1e9, 1, 1e-3, 1e9) == 0


@pytest.mark.parametrize("ranks", [2, 5, 64])
def test_at_the_crossover_latency_and_bandwidth_cost_the_same(ranks):
    at = crossover_bytes(ranks, 20e-6, 10e9)
    latency = all_reduce_s(0, ranks, 20e-6, 10e9)
    assert all_reduce_s(at, ranks, 20e-6, 10e9) == pytest.approx(2 * latency)


def test_the_roof_is_memory_before_the_ridge_and_arithmetic_behind_it():
    assert ridge(200e9, 20e9) == 10
    assert attainable(np.array([1, 10, 100]), 200e9, 20e9).tolist() == [20e9, 200e9, 200e9]
    assert roofline_s(200e9, 1, 200e9, 20e9) == 1 and roofline_s(1, 40e9, 200e9, 20e9) == 2


def test_a_product_is_two_operations_a_term_and_moves_each_operand_once():
    assert matmul_work(2, 3, 5, 4) == (60, (10 + 15 + 6) * 4)
    assert matmul_work(2, 3, 5, 2, batch=7) == (420, 31 * 2 * 7)
