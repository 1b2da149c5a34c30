"""The arithmetic of delayed gradients, each formula beside a calculation that does not use it."""

import math
import random

import numpy as np
import pytest

from labkit.errors import UsageError
from labkit.theory import delay
from labkit.theory.delay import (
    delayed_descent,
    limit_by_iteration,
    mean_staleness,
    spectral_radius,
    stability_limit,
    staleness_by_speed,
    staleness_sum,
    throughput_ratio,
)


@pytest.mark.parametrize("tau", range(9))
def test_iteration_finds_the_limit_of_the_formula_within_a_hundredth(tau):
    formula = 2 * math.sin(math.pi / (2 * (2 * tau + 1)))
    assert stability_limit(tau) == pytest.approx(formula) == pytest.approx(2 * math.cos(tau * math.pi / (2 * tau + 1)))
    assert limit_by_iteration(tau) == pytest.approx(formula, rel=0.01)


def test_the_first_limits_are_2_1_and_the_golden_ratio():
    assert [round(stability_limit(tau), 3) for tau in range(4)] == [2, 1, 0.618, 0.445]


@pytest.mark.parametrize(("momentum", "limit"), [(0.5, 0.199), (0.9, 0.035)])
def test_momentum_shrinks_the_limit(momentum, limit):
    assert stability_limit(3, momentum) == pytest.approx(limit, abs=0.0005)
    assert limit_by_iteration(3, momentum) == pytest.approx(stability_limit(3, momentum), rel=0.01)


@pytest.mark.parametrize("momentum", [0.5, 0.9])
@pytest.mark.parametrize("tau", [0, 1, 2, 5, 8])
def test_with_momentum_the_roots_say_what_iteration_finds(tau, momentum):
    assert stability_limit(tau, momentum) == pytest.approx(limit_by_iteration(tau, momentum), rel=0.01)


def test_the_roots_agree_with_the_formula_without_momentum():
    for tau in range(9):
        limit = stability_limit(tau)
        assert spectral_radius(tau, 0.999 * limit) < 1 < spectral_radius(tau, 1.001 * limit)


def test_without_delay_momentum_widens_the_limit_and_with_any_delay_it_narrows_it():
    assert stability_limit(0, 0.9) == 3.8 > stability_limit(0)
    assert all(stability_limit(tau, 0.9) < stability_limit(tau, 0.5) < stability_limit(tau) for tau in range(1, 9))


def test_descent_shrinks_below_the_limit_and_grows_above_it():
    calm, wild = (delayed_descent(3, share * 0.445, updates=2000) for share in (0.9, 1.1))
    assert calm[-1] < 1e-3 and wild[-1] > 1e12


def test_descent_without_delay_is_plain_descent():
    assert np.allclose(delayed_descent(0, 0.3, updates=5), 0.7 ** np.arange(6))


@pytest.mark.parametrize(("tau", "momentum"), [(-1, 0), (1.5, 0), (True, 0), (delay.MAX_DELAY + 1, 0), (3, 1.0), (3, -0.1)])
def test_what_is_no_delay_or_no_momentum_is_refused(tau, momentum):
    with pytest.raises(UsageError, match="given"):
        stability_limit(tau, momentum)


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("seed", range(3))
def test_mean_staleness_does_not_depend_on_the_workers_speeds(workers, seed):
    """Workers that finish in any order, and stop so that the last pushes are one of each."""
    draw, total = random.Random(seed), 20 * workers + seed
    weights = [draw.random() + 0.01 for _ in range(workers)]
    pulled, at_work, staleness = [0] * workers, list(range(workers)), []
    for version in range(total):
        worker = draw.choices(at_work, [weights[w] for w in at_work])[0]
        staleness.append(version - pulled[worker])
        pulled[worker] = version + 1
        if version >= total - workers:
            at_work.remove(worker)
    assert sum(staleness) == staleness_sum(workers, total)
    assert np.mean(staleness) == pytest.approx(mean_staleness(workers, total))


def test_a_straggler_shifts_staleness_between_the_workers_and_leaves_its_mean():
    usual, slow = staleness_by_speed(4, 4.0)
    assert (usual, slow) == (2.25, 12)
    assert (3 * usual + slow / 4) / (3 + 1 / 4) == pytest.approx(3)
    assert staleness_by_speed(1, 4.0) == (0, 0)


def test_throughput_gains_what_the_others_no_longer_wait():
    assert throughput_ratio(4, 4.0) == 3.25
    assert throughput_ratio(4, 1.0) == 1 == throughput_ratio(1, 4.0)
