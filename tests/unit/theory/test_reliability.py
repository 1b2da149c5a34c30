"""The arithmetic of failures: formulas beside a simulation that does not know them, and beside what was published."""

import math

import pytest

from labkit.detect.cost import cost_of
from labkit.errors import UsageError
from labkit.facts.failures import quoted_gpu_hours
from labkit.theory.reliability import (
    Costs,
    best_interval,
    goodput,
    gpu_hours_between,
    gpus_from_which_failures_are_due,
    interruption_probability,
    mtbf_hours,
    simulate,
    without_checkpoints,
    young_interval,
)


@pytest.mark.parametrize("save", [1e-4, 1e-3, 1e-2, 0.05, 0.1])
@pytest.mark.parametrize("restart", [0.0, 0.3])
def test_youngs_interval_is_within_half_a_percent_of_the_best_up_to_saves_of_a_tenth_of_the_mtbf(save, restart):
    costs = Costs(save=save, restart=restart, mtbf=1.0)
    best = goodput(best_interval(costs), costs)
    assert 0.995 * best <= goodput(young_interval(costs), costs) <= best


def test_beyond_that_it_is_not():
    costs = Costs(save=0.3, restart=0.0, mtbf=1.0)
    assert goodput(young_interval(costs), costs) < 0.98 * goodput(best_interval(costs), costs)


@pytest.mark.parametrize(
    ("interval", "save", "restart"),
    [(0.05, 0.005, 0.0), (0.14, 0.01, 0.1), (0.5, 0.05, 0.2), (1.0, 0.1, 0.05)],
)
def test_the_formula_is_within_a_percent_of_the_simulation(interval, save, restart):
    costs = Costs(save=save, restart=restart, mtbf=1.0)
    assert simulate(interval, costs, failures=50_000, seed=1) == pytest.approx(goodput(interval, costs), rel=0.01)


def test_a_simulation_repeats_with_its_seed():
    costs = Costs(save=0.01, restart=0.1, mtbf=1.0)
    one = simulate(0.1, costs, failures=150, seed=3)
    assert simulate(0.1, costs, failures=150, seed=3) == one != simulate(0.1, costs, failures=150, seed=4)
    assert one == pytest.approx(goodput(0.1, costs), rel=0.05)  # chance leaves a few percent after 150 failures


def test_the_best_interval_is_where_the_slope_is_zero():
    """d/dτ of ln τ − ln(e^((τ+C)/M) − 1) is 0 where (1 − τ/M)·e^((τ+C)/M) is 1."""
    costs = Costs(save=0.2, restart=0.4, mtbf=2.0)
    best = best_interval(costs)
    assert (1 - best / 2.0) * math.exp((best + 0.2) / 2.0) == pytest.approx(1.0, abs=1e-6)


def test_units_do_not_matter():
    hours, seconds = Costs(save=0.1, restart=0.5, mtbf=3.0), Costs(save=360, restart=1800, mtbf=10800)
    assert 3600 * young_interval(hours) == pytest.approx(young_interval(seconds))
    assert goodput(1.0, hours) == pytest.approx(goodput(3600, seconds))


def test_a_job_much_longer_than_the_mtbf_never_ends_without_checkpoints():
    costs = Costs(save=0.0, restart=0.0, mtbf=1.0)
    assert without_checkpoints(0.001, costs) == pytest.approx(1.0, abs=1e-3)
    assert without_checkpoints(1.0, costs) == pytest.approx(1 / (math.e - 1))
    assert without_checkpoints(5000.0, costs) == 0.0


# published counts


def test_the_published_run_was_interrupted_every_50_700_gpu_hours():
    assert quoted_gpu_hours() == gpu_hours_between(419, 16384, 54) == pytest.approx(50_700, rel=1e-3)
    assert mtbf_hours(quoted_gpu_hours(), 16384) == pytest.approx(3.09, abs=0.01)


def test_64_gpus_for_a_week_are_interrupted_with_probability_19_or_12_percent():
    week = 7 * 24
    assert interruption_probability(quoted_gpu_hours(), 64, week) == pytest.approx(0.19, abs=0.005)
    assert interruption_probability(quoted_gpu_hours(gpu_causes_alone=True), 64, week) == pytest.approx(0.12, abs=0.005)


def test_from_some_size_on_a_job_is_longer_than_its_mtbf():
    for hours in (24, 168, 54 * 24):
        size = gpus_from_which_failures_are_due(quoted_gpu_hours(), hours)
        assert mtbf_hours(quoted_gpu_hours(), size) < hours <= mtbf_hours(quoted_gpu_hours(), size - 1)
    assert gpus_from_which_failures_are_due(quoted_gpu_hours(), 168) == 302


def test_what_one_failure_costs_without_checkpoints_is_all_that_was_computed():
    lost = cost_of(1.0, num_gpus=64, hours=47, price_per_gpu_hour=2.5)
    assert (lost.gpu_hours, lost.money) == (3008, 7520)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Costs(save=-1, restart=0, mtbf=1), "save must be at least 0; given -1"),
        (lambda: Costs(save=0, restart=0, mtbf=0), "mtbf must be above 0; given 0"),
        (lambda: Costs(save=0, restart=math.nan, mtbf=1), "restart must be at least 0; given nan"),
        (lambda: goodput(0, Costs(save=0, restart=0, mtbf=1)), "an interval must be above 0; given 0"),
        (lambda: best_interval(Costs(save=0, restart=0, mtbf=1)), "no best interval"),
        (lambda: simulate(1, Costs(save=0, restart=0, mtbf=1), failures=0, seed=0), "at least one failure; given 0"),
    ],
)
def test_what_makes_no_sense_is_refused(call, said):
    with pytest.raises(UsageError, match=said):
        call()
