"""What a gradient scaler does, and what a step costs: from hand-made records."""

import pytest

from labkit.detect.precision import clip_before_unscale, precision_speed, skipped_steps

from .precision_readings import beside_fp32, made_of, timed, update


def scaled(pattern, **facts):
    """A run of (scale, skipped) by step."""
    return made_of([({} if skipped else update()) | {"scaler_steps": 1, "scale": s} for s, skipped in pattern], **facts)


def judge(pattern, **facts):
    return skipped_steps.detect(beside_fp32(scaled(pattern, **facts)))


def probing(interval, cycles, scale=2.0**17):
    """A scale that doubles after `interval` good steps, overflows once, and halves."""
    return [(scale, False)] * interval + [(2 * scale, True), *[(scale, False)] * interval] * cycles


# skipped-steps


def test_skips_in_every_other_step_that_no_growth_explains_are_found_with_what_they_cost():
    verdict = judge([(2.0 ** (40 - n // 2), n % 2 == 1) for n in range(60)])
    assert (verdict.status, verdict.reason, verdict.waste) == ("found", "skips-beyond-the-search", 0.5)
    assert "50% of the steps" in verdict.cause


def test_a_run_in_which_nothing_ever_steps_is_dead():
    verdict = judge([(65536.0 / 2**n, True) for n in range(30)])
    assert (verdict.status, verdict.reason, verdict.waste) == ("found", "not-finite-at-any-scale", 1.0)
    for times, status in ((40, "found"), (12, "inconclusive")):  # of a script: without an update no step ends
        once = made_of([{"scaler_steps": times, "scale": 0.5}])
        assert skipped_steps.detect(beside_fp32(once)).status == status
    assert verdict.numbers["steps"] == 30


@pytest.mark.parametrize("interval", [1, 5, 100, 2000])
def test_the_probing_of_a_dynamic_scale_is_how_it_works(interval):
    """With an interval of 5 a sixth of the steps are skipped, and that is right."""
    assert judge(probing(interval, cycles=6)).status == "clear"


def test_the_first_search_for_a_scale_is_how_it_works():
    coming_down = [(2.0 ** (40 - n), True) for n in range(12)]
    verdict = judge(coming_down + [(2.0**28, False)] * 30)
    assert (verdict.status, verdict.reason) == ("clear", "skips-only-in-the-search")


def test_a_scale_that_grew_may_be_undone_some_steps_later():
    """Gradients differ from batch to batch."""
    edge = [(2.0**18, False)] * 7 + [(2.0**18, True)] + [(2.0**17, False)] * 10
    assert judge([(2.0**17, False)] * 10 + edge * 5).status == "clear"


def test_one_skip_in_a_hundred_steps_is_no_finding():
    assert judge([(2.0**16, n == 50) for n in range(100)]).status == "clear"


def test_no_skip_at_all_is_clear():
    verdict = judge([(65536.0, False)] * 5)
    assert (verdict.status, verdict.reason) == ("clear", "no-step-skipped")


def test_a_few_skips_in_a_short_run_cannot_be_told():
    assert judge([(2.0 ** (16 - n // 3), n % 3 == 2) for n in range(12)]).status == "inconclusive"
    assert judge([(2.0**16, n % 20 == 10) for n in range(100)]).status == "inconclusive"


def test_a_run_that_ends_while_the_scale_still_comes_down_cannot_be_told():
    verdict = judge([(2.0 ** (60 - n), True) for n in range(30)])
    assert (verdict.status, verdict.reason) == ("inconclusive", "scale-still-falls")


def test_a_scale_that_nothing_brings_down_is_found_and_not_said_to_fall():
    verdict = judge([(2.0**24, True)] * 8)
    assert (verdict.status, verdict.reason, verdict.waste) == ("found", "scale-never-falls", 1.0)
    assert "stays at 1.678e+07" in verdict.cause and "update()" in verdict.fix
    assert judge([(2.0**24, True)] * 2 + [(2.0**23, True)] * 6).status == "inconclusive", "some scalers wait a little"


def test_without_a_scaler_there_is_nothing_to_skip():
    assert skipped_steps.detect(beside_fp32(made_of([update()] * 5))).status == "not_applicable"


# clip-before-unscale


def clipped(norms, scale=65536.0, clip_norm=1.0, **facts):
    steps = [update(norm=norm) | {"scaler_steps": 1, "scale": scale} for norm in norms]
    return clip_before_unscale.detect(beside_fp32(made_of(steps, clip_norm=clip_norm, **facts)))


def test_norms_of_clip_norm_over_scale_are_found():
    verdict = clipped([1 / 65536 * (1 - 1e-6)] * 10, loop_where="train.py:9")
    assert (verdict.status, verdict.reason, verdict.where) == ("found", "clipped-while-scaled", "train.py:9")
    assert "1 divided by the scale of 65,536" in verdict.cause and "unscale_" in verdict.fix


def test_norms_up_to_clip_norm_are_clear():
    assert clipped([1.0, 0.999, 1.0, 0.4, 0.1]).status == "clear"


def test_norms_from_before_clipping_tell_nothing_of_the_order():
    """What clip_grad_norm_ returns: larger than clip_norm in either order."""
    for scale_in_them in (1.0, 65536.0):
        verdict = clipped([scale_in_them * norm for norm in (0.7, 1.5, 2.0, 0.9, 3.0)])
        assert (verdict.status, verdict.reason) == ("inconclusive", "norms-are-those-before-clipping")


def test_a_scale_near_one_and_gradients_too_small_to_be_clipped_hide_the_order():
    verdicts = clipped([1.0] * 10, scale=1.0), clipped([1e-9] * 10), clipped([1 / 65536] * 2)
    assert {verdict.status for verdict in verdicts} == {"inconclusive"}
    assert [verdict.reason for verdict in verdicts] == [
        "too-few-scaled-norms", "gradients-too-small-to-clip", "too-few-scaled-norms",
    ]  # fmt: skip
    assert [verdicts[at].numbers["seen"] for at in (0, 2)] == [0, 2]


def test_a_norm_that_happens_to_equal_it_once_is_no_finding():
    assert clipped([1 / 65536, 0.5, 0.6, 0.7, 0.8, 0.9, 0.5, 0.4, 0.3, 0.2, 0.1]).status == "clear"


def test_without_clipping_or_a_scaler_the_question_does_not_arise():
    assert clipped([1e-5] * 10, clip_norm=0.0).status == "not_applicable"
    plain = made_of([update(norm=1e-5)] * 10, clip_norm=1.0)
    assert clip_before_unscale.detect(beside_fp32(plain)).status == "not_applicable"


# precision-speed

STEADY = [1.0, 1.02, 0.99, 1.01, 1.0, 1.03, 0.98, 1.0, 1.01]


def speed(own, fp32=STEADY, **facts):
    return precision_speed.detect(beside_fp32(made_of([update()], timed(own, fp32), **facts)))


def test_slower_in_every_repeat_is_found_and_wastes_the_difference():
    verdict = speed([2 * t for t in STEADY])
    assert (verdict.status, verdict.reason) == ("found", "slower-than-fp32") and verdict.waste == pytest.approx(0.5)
    assert "2.00 times as long as in fp32" in verdict.cause


def test_faster_in_every_repeat_is_clear_and_says_by_how_much():
    verdict = speed([t / 3 for t in STEADY])
    assert (verdict.status, verdict.reason) == ("clear", "faster-than-fp32")
    assert "3.00 times as fast" in verdict.cause


def test_one_repeat_that_something_else_disturbed_does_not_hide_a_clear_difference():
    assert speed([20.0, *[2 * t for t in STEADY[1:]]]).status == "found"


@pytest.mark.parametrize(
    "own", [[0.7, 1.6, 0.8, 1.4, 0.9, 1.5, 0.8, 1.2, 0.95], [0.6, 0.8, 1.3, 1.4, 1.5, 1.5, 1.6, 1.7, 1.9]]
)
def test_repeats_that_disagree_are_inconclusive_whatever_their_median(own):
    verdict = speed(own)
    assert (verdict.status, verdict.reason) == ("inconclusive", "speed-hidden-by-noise")
    assert verdict.numbers["low"] < 1 < verdict.numbers["high"]


def test_as_fast_as_fp32_is_clear():
    verdict = speed([t * 1.01 for t in STEADY])
    assert (verdict.status, verdict.reason) == ("clear", "as-fast-as-fp32")
    assert speed(STEADY).reason == verdict.reason


def test_slower_by_a_hair_in_every_repeat_is_not_worth_a_word():
    assert speed([t * 1.02 for t in STEADY]).status == "clear"


def test_few_repeats_are_inconclusive_and_none_are_not_applicable():
    few, none = speed([9.0] * 5, [1.0] * 5), speed([], [])
    assert (few.status, few.reason, few.numbers["repeats"]) == ("inconclusive", "too-few-repeats-beside-fp32", 5)
    assert (none.status, none.reason) == ("not_applicable", "not-timed-beside-fp32")


def test_fp32_is_not_compared_with_itself():
    verdict = speed([2 * t for t in STEADY], precision="fp32")
    assert (verdict.status, verdict.reason) == ("not_applicable", "is-fp32-itself")
