"""Gradients that become 0, updates that vanish, casts that stay: from hand-made records."""

import math

import msgspec
import pytest

from labkit.detect.precision import gradient_underflow, lost_updates, non_finite, stale_casts
from labkit.record.schema import Run

from ..builders import head
from .precision_readings import beside_fp32, made_of, memory, update


def underflow(own, reference=None, **facts):
    runs = [None if zeros is None else made_of([update(zeros=z) for z in zeros], **facts) for zeros in (own, reference)]
    return gradient_underflow.detect(beside_fp32(*runs))


# gradient-underflow


def test_zeros_far_beyond_fp32s_are_found_with_the_place():
    verdict = underflow([780, 790, 785, 800], [250, 260, 255, 250], loop_where="train.py:7")
    assert (verdict.status, verdict.reason) == ("found", "gradients-below-the-smallest-number")
    assert verdict.where == "train.py:7" and verdict.numbers["lost"] == pytest.approx(0.535 / 0.74625)
    assert "79% of the gradient elements are exactly 0, in fp32 25%" in verdict.cause and "GradScaler" in verdict.fix


@pytest.mark.parametrize("zeros", [0, 110, 490, 1000])
def test_zeros_that_fp32_has_too_are_no_finding_however_many(zeros):
    """ReLU and blank pixels make 11 to 49 %."""
    assert underflow([zeros] * 6, [zeros] * 6).status == "clear"


def test_fewer_zeros_than_fp32_are_no_finding():
    assert underflow([100] * 6, [300] * 6).status == "clear"


def test_what_varies_from_step_to_step_as_much_as_it_exceeds_fp32_cannot_be_told():
    verdict = underflow([100, 500, 120, 700], [90, 400, 150, 500])
    assert (verdict.status, verdict.reason) == ("inconclusive", "zeros-vary-from-step-to-step")


def test_two_updates_are_too_few():
    verdict = underflow([900, 900], [100, 100])
    assert (verdict.status, verdict.reason) == ("inconclusive", "too-few-finite-gradients")
    assert verdict.numbers["compared"] == 2


def test_without_an_fp32_run_it_says_which_run_to_add():
    verdict = underflow([900] * 5)
    assert (verdict.status, verdict.reason) == ("not_applicable", "no-fp32-run-to-compare-zeros")
    assert underflow([900] * 5, []).reason == verdict.reason


def test_a_program_that_records_no_gradients_is_told_how():
    assert underflow([], [1]).status == "not_applicable"


def test_steps_with_nan_gradients_are_left_out():
    steps = [update(zeros=0, nonfinite=1000)] * 10 + [update(zeros=200)] * 5
    reference = made_of([update(zeros=200)] * 5)
    assert gradient_underflow.detect(beside_fp32(made_of(steps), reference)).status == "clear"
    nothing_else = made_of(steps[:10])
    assert gradient_underflow.detect(beside_fp32(nothing_else, reference)).status == "inconclusive"


def test_where_a_scaler_skipped_every_step_the_skips_come_first():
    skipped = made_of([{"scaler_steps": 1, "scale": 2.0}] * 5)
    verdict = gradient_underflow.detect(beside_fp32(skipped, made_of([update()] * 5)))
    assert (verdict.status, verdict.reason) == ("inconclusive", "every-step-was-skipped")


# lost-updates


def lost(own, reference=(0, 0, 0, 0), weights=(20, 40)):
    runs = [made_of([update(zeros=200, lost=n) for n in numbers], [memory(size)])
            for numbers, size in zip((own, reference), weights, strict=True)]  # fmt: skip
    return lost_updates.detect(beside_fp32(*runs))


def test_updates_that_leave_most_weights_as_they_were_are_found():
    verdict = lost([750, 760, 740, 755])
    assert (verdict.status, verdict.reason) == ("found", "updates-round-away")
    assert "94% of the updates" in verdict.cause and "autocast" in verdict.fix


def test_updates_that_vanish_in_fp32_weights_are_not_blamed_on_the_format():
    verdict = lost([750, 760, 740, 755], weights=(40, 40))
    assert (verdict.status, verdict.reason) == ("found", "updates-round-away-in-fp32-weights")


@pytest.mark.parametrize("also", [0, 300, 790])
def test_updates_that_fp32_loses_too_are_no_finding(also):
    """A tiny learning rate is not precision's fault."""
    assert lost([also] * 4, [also] * 4).status == "clear"


def test_weights_without_a_gradient_need_not_move():
    still = [update(zeros=900, lost=0, unchanged=900)] * 4
    assert lost_updates.detect(beside_fp32(made_of(still), made_of(still))).status == "clear"


def test_updates_lost_now_and_then_cannot_be_told():
    now_and_then, few = lost([0, 700, 0, 0]), lost([700, 700], [0, 0])
    assert now_and_then.status == few.status == "inconclusive"
    assert (now_and_then.reason, few.reason) == ("lost-updates-vary-from-step-to-step", "too-few-updates-to-compare")


def test_without_an_fp32_run_or_counts_there_is_no_answer():
    assert lost_updates.detect(beside_fp32(made_of([update(lost=700)] * 4))).status == "not_applicable"
    assert lost_updates.detect(beside_fp32(made_of([{"updates": 1}] * 4))).status == "not_applicable"


def test_weights_that_are_nan_are_no_lost_updates():
    steps = [update(lost=800, weights_nonfinite=1000)] * 5
    assert lost_updates.detect(beside_fp32(made_of(steps), made_of(steps))).status == "inconclusive"


# stale-casts


def checked(stale, open_then=1, count=5, **more):
    return [update(forward_checks=1, forward_stale=stale, autocast_open_at_update=open_then, **more)] * count


def repeated(losses, **more):
    return made_of([update(batch=7, loss=value, **more) for value in losses])


def test_a_forward_pass_that_computes_with_old_casts_is_found_on_any_batches():
    verdict = stale_casts.detect(beside_fp32(made_of(checked(1), loop_where="train.py:3")))
    assert (verdict.status, verdict.reason) == ("found", "casts-of-older-weights")
    assert verdict.where == "train.py:3" and "around each forward pass" in verdict.fix


def test_a_loss_that_is_the_same_number_on_one_batch_while_weights_move_is_found_without_such_checks():
    verdict = stale_casts.detect(beside_fp32(repeated([2.25] * 20)))
    assert (verdict.status, verdict.reason) == ("found", "loss-stands-still-while-weights-move")


def test_where_nobody_counted_the_weights_that_move_updates_that_vanish_are_named_too():
    run = made_of([{"updates": 1, "gradient_elements": 1000, "batch": 7, "loss": 2.25}] * 20)
    verdict = stale_casts.detect(beside_fp32(run))
    assert (verdict.status, verdict.reason) == ("found", "loss-stands-still")
    assert "too small to change a weight" in verdict.cause and "fp32" in verdict.fix and "autocast" in verdict.fix


def test_both_signs_together_are_counted():
    run = made_of([update(batch=7, loss=2.25, forward_checks=1, forward_stale=1, autocast_open_at_update=1)] * 20)
    verdict = stale_casts.detect(beside_fp32(run))
    assert verdict.reason == "casts-of-older-weights-and-loss-stands-still" and verdict.numbers["times"] == 20


def test_a_loss_that_moves_a_little_is_still_stale_if_the_checks_say_so():
    """LayerNorm and embeddings are not cast, so a GPT's loss moves."""
    run = made_of([update(batch=7, loss=5.5 - n / 100, forward_checks=1, forward_stale=1) for n in range(20)])
    assert stale_casts.detect(beside_fp32(run)).status == "found"


def test_autocast_open_at_the_update_is_harmless_where_casts_are_not_kept():
    assert stale_casts.detect(beside_fp32(made_of(checked(0)))).status == "clear"


def test_a_loss_that_moves_on_one_batch_is_clear():
    assert stale_casts.detect(beside_fp32(repeated([2.25, 2.2, 2.1, 2.0, 1.9]))).status == "clear"


@pytest.mark.parametrize("losses", [[0.0] * 20, [math.nan] * 20, [math.inf] * 20])
def test_a_loss_of_nothing_or_of_no_number_stands_still_for_another_reason(losses):
    assert stale_casts.detect(beside_fp32(repeated(losses))).status == "not_applicable"


def test_weights_that_do_not_move_explain_a_loss_that_does_not():
    assert stale_casts.detect(beside_fp32(repeated([2.25] * 20, unchanged=1000))).status == "not_applicable"
    skipped = made_of([{"batch": 7, "loss": 2.25, "scaler_steps": 1, "scale": 4.0}] * 20)
    assert stale_casts.detect(beside_fp32(skipped)).status == "not_applicable"


def test_equal_losses_of_different_batches_say_nothing():
    run = made_of([update(batch=n, loss=2.25) for n in range(20)])
    assert stale_casts.detect(beside_fp32(run)).status == "not_applicable"


@pytest.mark.parametrize("losses", [[2.25] * 3, [2.25, 2.25, 2.25, 2.2, 2.2]])
def test_a_few_equal_losses_may_be_rounding(losses):
    assert stale_casts.detect(beside_fp32(repeated(losses))).status == "inconclusive"


# non-finite


def nan_from(step, count=20):
    return made_of([update(loss=2.0 if n < step else math.nan) for n in range(count)])


def test_a_loss_that_becomes_nan_is_found_with_its_step():
    verdict = non_finite.detect(beside_fp32(nan_from(3)))
    assert (verdict.status, verdict.reason, verdict.numbers["step"]) == ("found", "loss-not-finite", 3)
    assert verdict.cause == (
        "the loss is NaN or infinite at step 3, and no error is raised; every loss from then to the end is NaN or infinite"
    )


def test_a_rank_whose_loss_alone_is_no_number_is_found_and_named():
    first, second = made_of([update(loss=2.0)] * 12).ranks + nan_from(5).ranks
    second = msgspec.structs.replace(second, head=head(1, 2))
    verdict = non_finite.detect(beside_fp32(Run("variant", (first, second), 1.0)))
    assert (verdict.status, verdict.reason, verdict.numbers["step"]) == ("found", "loss-not-finite", 5)
    assert verdict.cause == "the loss is NaN or infinite at step 5 on rank 1, and no error is raised"


def test_weights_come_first_if_they_are_hit_first():
    steps = [update(loss=2.3, weights_nonfinite=400)] + [update(loss=math.nan, nonfinite=1000, weights_nonfinite=1000)] * 11
    verdict = non_finite.detect(beside_fp32(made_of(steps)))
    assert verdict.reason == "weights-not-finite" and verdict.evidence["first_step"].value == 0


def test_infinite_gradients_that_the_optimizer_takes_are_found_and_those_that_a_scaler_skips_are_not():
    took = [update(loss=2.0)] * 5 + [update(loss=2.0, nonfinite=3)] + [update(loss=2.0)] * 6
    assert non_finite.detect(beside_fp32(made_of(took))).reason == "gradients-not-finite"
    skipped = [update(loss=2.0)] * 5 + [{"loss": 2.0, "scaler_steps": 1, "scale": 4.0}] + [update(loss=2.0)] * 6
    assert non_finite.detect(beside_fp32(made_of(skipped))).status == "clear"


def test_finite_for_a_few_steps_is_no_answer_yet():
    assert non_finite.detect(beside_fp32(made_of([update(loss=2.0)] * 9))).status == "inconclusive"
    assert non_finite.detect(beside_fp32(made_of([update(loss=1e30)] * 10))).status == "clear"


def test_without_a_loss_there_is_nothing_to_judge():
    assert non_finite.detect(beside_fp32(made_of([update()] * 20))).status == "not_applicable"
