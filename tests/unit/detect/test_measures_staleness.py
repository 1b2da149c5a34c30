"""Measures of staleness, on runs made of plain lists."""

import numpy as np
import pytest

from labkit.detect.staleness import measures
from labkit.theory.delay import stability_limit, staleness_sum

from ..builders import in_batches, record_of, run_of
from ..detect.staleness_readings import ROUND, beside_sync, curvature, falling, in_step, served

BY_SPEED = (0, 1, 0, 1, 0, 1, 2, 0, 1, 2)


def test_gradients_come_in_the_order_in_which_they_were_applied_with_their_age():
    of_run = measures.pushes(served(BY_SPEED, falling(10)))
    assert of_run.rank.tolist() == list(BY_SPEED)
    assert of_run.staleness.tolist() == [0, 1, 1, 1, 1, 1, 6, 2, 2, 2]
    assert of_run.of_rank(2).tolist() == [6, 2] and of_run.workers == [0, 1, 2] and of_run.one_by_one


def test_ranks_in_step_share_their_versions():
    of_run = measures.pushes(in_step(falling(5)))
    assert len(of_run) == 20 and not of_run.one_by_one and not of_run.staleness.any()


def test_a_run_without_versions_has_no_gradients_to_speak_of():
    run = run_of([[in_batches(list(range(8)), 4)]])
    assert measures.pushes(run) is None and measures.loss_by_samples(run) is None
    assert measures.staleness_measures(record_of(run)) == {}


def test_the_measures_say_whether_the_mean_is_as_derived():
    assert served(BY_SPEED) and sum([0, 1, 1, 1, 1, 1, 6, 2, 2, 2]) == staleness_sum(3, 10)
    found = measures.staleness_measures(beside_sync(served(BY_SPEED)))
    assert found["mean_staleness_as_derived"].value is True and found["staleness_max"].value == 6
    assert (found["staleness_of_slowest"].value, found["gradients_of_slowest"].value) == (4, 2)
    held_back = measures.staleness_measures(beside_sync(served((*BY_SPEED, 0, 0))))
    assert held_back["mean_staleness_as_derived"].value is False
    assert "mean_staleness_as_derived" not in measures.staleness_measures(beside_sync(in_step(falling(5))))


def test_the_loss_is_the_mean_of_a_window_against_all_samples_so_far():
    losses = measures.loss_by_samples(served(ROUND * 5, [float(n) for n in range(20)]))
    assert losses.samples.tolist() == [64, 96, 128, 160] and losses.loss[0] == np.mean(range(8))
    assert losses.first == 1.5 and losses.last == np.mean(range(8, 20))


def test_a_run_shorter_than_a_window_has_one_point():
    losses = measures.loss_by_samples(served((0, 1), [2.0, 4.0]))
    assert losses.loss.tolist() == [3.0] and losses.last == 3.0


def test_a_loss_that_was_no_number_stays_none():
    assert np.isnan(measures.loss_by_samples(served(ROUND, [1.0, float("nan"), 1.0, 1.0])).last)


def test_throughput_is_all_samples_over_the_time_from_the_first_to_the_last():
    assert measures.samples_per_s(served(ROUND * 5)) == pytest.approx(20 * 8 / 20e-6)


def test_the_learning_rate_is_placed_beside_the_limit_of_its_delay_and_momentum():
    run = served(ROUND * 25, lr=0.2, momentum=0.9)
    at = measures.stability(beside_sync(run, in_step(falling(9), events=[curvature(4.0), curvature(5.0)])))
    assert (at.rate, at.delay, at.limit, at.limit_without_delay) == (1.0, 3, stability_limit(3, 0.9), 3.8)
    assert at.times_the_limit == pytest.approx(1 / 0.0348, rel=0.01)


def test_curvature_may_be_a_fact_and_without_it_nothing_is_said_of_stability():
    assert measures.sharpness_of(beside_sync(served(ROUND, sharpness=3.0))) == 3.0
    assert measures.stability(beside_sync(served(ROUND, lr=0.2))) is None
    assert measures.stability(beside_sync(served(ROUND, sharpness=3.0))) is None


def test_repeats_are_compared_by_the_order_of_ranks_and_by_rank_0s_weights():
    same = beside_sync(served(ROUND), None, repeat=served(ROUND))
    other = beside_sync(served(ROUND), None, repeat=served(ROUND), **{"repeat-2": served(ROUND[::-1], weights="b")})
    assert measures.arrival_repeats(same) and measures.weights_repeat(same)
    assert measures.arrival_repeats(other) is False and measures.weights_repeat(other) is False
    once = beside_sync(served(ROUND))
    assert measures.arrival_repeats(once) is None and measures.weights_repeat(once) is None
