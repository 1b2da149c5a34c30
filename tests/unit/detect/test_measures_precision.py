"""What is read out of records about precision, from hand-made ones."""

import math

import numpy as np
import pytest

from labkit.detect.precision import measures
from labkit.detect.precision.summary import precision_measures
from labkit.theory.formats import BF16, FP16

from ..detect.precision_readings import beside_fp32, made_of, memory, timed, update


def test_shares_are_of_updates_with_finite_gradients():
    run = made_of([update(zeros=200, lost=400), {}, update(zeros=0, nonfinite=1), update(zeros=600, lost=100)])
    assert measures.zero_shares(run).tolist() == [0.2, 0.6]
    assert measures.lost_shares(run).tolist() == [0.5, 0.0, 0.25]


def test_an_excess_is_of_what_the_reference_leaves_with_its_spread():
    found = measures.excess(np.full(10, 0.8), np.full(10, 0.2))
    assert found.share == pytest.approx(0.75) and found.low == found.high == pytest.approx(0.75)
    spread = measures.excess(np.array([0.7, 0.9] * 5), np.full(10, 0.2))
    assert spread.low == pytest.approx(0.75 - 3 * 0.1 / math.sqrt(10) / 0.8)
    assert measures.excess(np.array([]), np.full(3, 0.2)) is None
    assert measures.excess(np.full(3, 1.0), np.full(3, 1.0)).share == 0


def test_the_first_value_that_is_not_finite_is_the_loss_before_the_gradients_before_the_weights():
    assert measures.first_nonfinite(made_of([update(loss=1.0)] * 3)) is None
    step = update(loss=math.inf, nonfinite=3, weights_nonfinite=3)
    assert measures.first_nonfinite(made_of([update(loss=1.0), step])) == measures.NonFinite(1, "loss")
    step = update(loss=1.0, nonfinite=3, weights_nonfinite=3)
    assert measures.first_nonfinite(made_of([step])).what == "gradients"


@pytest.mark.parametrize(("count", "low", "high"), [(6, 1, 6), (8, 1, 8), (9, 2, 8), (11, 2, 10)])
def test_the_interval_of_a_ratio_leaves_out_the_outermost_of_nine_or_more(count, low, high):
    times = measures.speed(made_of([{}], timed(range(1, count + 1), [1.0] * count)))
    assert times.interval == (low, high)


def test_a_repeat_that_timed_one_of_the_two_is_left_out():
    events = timed([2.0, 3.0], [1.0, 1.0])[:3]
    assert measures.speed(made_of([{}], events)).ratios.tolist() == [2.0]
    assert measures.speed(made_of([{}], events[:1])) is None


def test_what_a_format_cannot_hold_is_below_half_its_smallest_number():
    counts = np.zeros(200, dtype=np.int64)
    for power, count in ((-26, 30), (-25, 20), (-24, 50)):
        counts[power - measures.LOWEST_EXPONENT] = count
    run = made_of([{}], arrays={"gradient_exponents": counts})
    assert measures.share_below(run, FP16) == 0.3 and measures.share_below(run, BF16) == 0
    assert measures.share_below(made_of([{}]), FP16) is None


def test_all_measures_of_a_run_and_of_fp32_beside_it():
    steps = [update(loss=2.0, zeros=500) | {"scaler_steps": 1, "scale": 4.0}] * 9 + [
        {"loss": 1.0, "scaler_steps": 1, "scale": 8.0}
    ]
    own = made_of(steps, [memory(40), *timed([2.0] * 9, [1.0] * 9)])
    found = precision_measures(beside_fp32(own, made_of([update(loss=0.5)] * 10)))
    values = {name: quantity.value for name, quantity in found.items()}
    assert values == {
        "updates": 9, "final_loss": 1.8, "final_loss_fp32": 0.5, "zero_gradients": 0.5, "zero_gradients_fp32": 0.2,
        "lost_updates": 0.0, "lost_updates_fp32": 0.0, "skipped_steps": 1, "final_scale": 8.0,
        "first_nonfinite_step": "none", "weights_bytes": 40, "gradients_bytes": 40, "optimizer_bytes": 0,
        "step_time": 2.0, "step_time_fp32": 1.0,
        "step_time_ratio_to_fp32": 2.0,
    }  # fmt: skip


def test_a_record_of_something_else_has_few_measures_and_breaks_none():
    assert set(precision_measures(beside_fp32(made_of([{}])))) == {"updates", "first_nonfinite_step"}
