"""The detectors of asynchronous training, on runs made of plain numbers: found, silent, inconclusive, not applicable."""

import random

import msgspec
import numpy as np
import pytest

from labkit.detect.staleness import repeatable, stale_gradients, straggler
from labkit.record.schema import RankLog, Run

from ..builders import crowded, in_batches, record_of, run_of, shares, shuffled, step
from ..noise import healthy, slowed
from .staleness_readings import ROUND, beside_sync, curvature, falling, in_step, paced, served

ORDER = ROUND * 25
FLAT = [2.3] * 100


def noisy(losses, spread, seed=0):
    draw = random.Random(seed)
    return [max(0.01, loss + draw.gauss(0, spread)) for loss in losses]


def stale(run, sync=None, **others):
    return stale_gradients.detect(beside_sync(run, sync, **others))


# Stale gradients


def test_stale_gradients_that_keep_the_loss_up_are_found_and_the_waste_is_all_of_it():
    verdict = stale(served(ORDER, FLAT, loop_where="train.py:3"), in_step(falling(25)))
    assert (verdict.status, verdict.waste, verdict.where) == ("found", 1.0, "train.py:3")
    assert verdict.reason == "stale-gradients-do-harm" and verdict.numbers["loss"] == pytest.approx(2.3)
    assert "2.9 versions old" in verdict.cause and "2.3 where a synchronous run" in verdict.cause
    assert "lower the learning rate" in verdict.fix


def test_stale_gradients_that_slow_the_loss_down_waste_what_a_synchronous_run_would_not_have_needed():
    verdict = stale(served(ORDER, falling(100, last=1.2)), in_step(falling(25)))
    assert verdict.status == "found" and verdict.waste == pytest.approx(0.56, abs=0.05)


@pytest.mark.parametrize("last", [float("nan"), 1e9])
def test_a_loss_that_is_no_number_or_grows_is_found(last):
    assert stale(served(ORDER, [*FLAT[:60], *[last] * 40]), in_step(falling(25))).status == "found"


def test_fresh_gradients_are_clear_and_need_no_reference():
    verdict = stale(in_step(falling(25), role="variant"))
    assert (verdict.status, verdict.reason) == ("clear", "every-gradient-is-fresh")


def test_stale_gradients_that_do_no_harm_are_clear_and_said_to_be_stale():
    verdict = stale(served(ORDER, noisy(falling(100), 0.02)), in_step(noisy(falling(25), 0.02)))
    assert (verdict.status, verdict.reason) == ("clear", "stale-gradients-do-no-harm")
    assert verdict.numbers["stale"].numbers["mean"] == verdict.evidence["staleness_mean"].value == pytest.approx(2.94)


def test_stale_gradients_that_train_where_the_synchronous_run_hardly_does_are_clear():
    assert stale(served(ORDER, falling(100)), in_step([2.3 - 0.001 * n for n in range(25)])).status == "clear"


def test_where_noise_hides_the_difference_the_answer_is_inconclusive():
    verdict = stale(served(ORDER, noisy(falling(100, last=0.4), 1.0)), in_step(noisy(falling(25, last=0.1), 1.0)))
    assert (verdict.status, verdict.reason) == ("inconclusive", "harm-hidden-by-noise")


def test_where_the_synchronous_run_does_not_learn_either_staleness_is_not_blamed():
    verdict = stale(served(ORDER, [5.0] * 100), in_step([2.3] * 25))
    assert (verdict.status, verdict.reason) == ("inconclusive", "synchronous-run-does-not-learn")


def test_without_a_synchronous_run_the_answer_is_which_run_to_add():
    verdict = stale(served(ORDER, falling(100)))
    assert (verdict.status, verdict.reason) == ("inconclusive", "loss-falls-and-no-synchronous-run")


def test_without_a_synchronous_run_theory_convicts_what_only_delay_makes_unstable():
    beyond = {"lr": 0.2, "momentum": 0.0, "events": [curvature(5.0)]}
    verdict = stale(served(ORDER, FLAT, **beyond))
    assert (verdict.status, verdict.reason) == ("found", "unstable-by-the-delay-alone")
    assert verdict.numbers["times"] == pytest.approx(2.25, abs=0.05) and verdict.numbers["delay"] == 3
    harm = stale(served(ORDER, FLAT, **beyond), in_step(falling(25)))
    assert harm.reason == "stale-gradients-do-harm-beyond-the-limit"
    assert "2.2 times the limit for a delay of 3" in verdict.cause and "2.2 times the limit for a delay of 3" in harm.cause
    too_high_anyway = stale(served(ORDER, FLAT, lr=1.0, momentum=0.0, events=[curvature(5.0)]))
    assert too_high_anyway.status == "inconclusive"
    assert too_high_anyway.reason == "loss-does-not-fall-and-no-synchronous-run"
    assert stale(served(ORDER, falling(100), **beyond)).status == "inconclusive"


def test_a_program_that_records_no_versions_is_told_what_to_record():
    verdict = stale_gradients.detect(record_of(run_of([[in_batches(s, 8) for s in shares(shuffled(40, 1), 2)]])))
    assert (verdict.status, verdict.reason) == ("not_applicable", "versions-not-recorded")


def test_a_program_that_records_no_loss_is_told_so():
    verdict = stale(served(ORDER))
    assert (verdict.status, verdict.reason) == ("inconclusive", "stale-and-no-loss-recorded")


def test_versions_that_run_backwards_are_not_taken_for_fresh():
    run = served(ORDER, FLAT)
    backwards = step(0, scalars={"version_pulled": 9, "version_pushed": 3, "loss_local": 1.0})
    logs = (RankLog(run.ranks[0].head, (*run.ranks[0].steps, backwards)), *run.ranks[1:])
    verdict = stale(Run("variant", logs, 1.0))
    assert (verdict.status, verdict.reason) == ("inconclusive", "versions-run-backwards")


def test_a_rank_that_only_serves_has_no_gradients_and_is_no_worker():
    verdict = stale(served([rank + 1 for rank in ORDER], FLAT), in_step(falling(25)))
    assert verdict.status == "found" and verdict.evidence["gradients"].value == 100


# Repeatable


def again(run, repeat=None):
    return repeatable.detect(beside_sync(run, None, **({} if repeat is None else {"repeat": repeat})))


def test_another_order_of_arrival_and_other_weights_are_found_and_the_order_is_blamed():
    verdict = again(served(ORDER), served(ORDER[::-1], weights="b"))
    assert (verdict.status, verdict.reason) == ("found", "weights-depend-on-the-order-of-arrival")


def test_equal_weights_are_clear():
    for verdict in (again(served(ORDER), served(ORDER)), again(in_step(FLAT[:9]), in_step(FLAT[:9]))):
        assert (verdict.status, verdict.reason, verdict.numbers["runs"]) == ("clear", "weights-repeat", 2)


def test_other_weights_in_the_same_order_are_found_and_the_order_is_not_blamed():
    verdict = again(in_step(FLAT[:9]), in_step(FLAT[:9], weights="b"))
    assert (verdict.status, verdict.reason) == ("found", "weights-differ-in-one-order")
    assert "2 runs with one seed" in verdict.cause and "seed whatever is random" in verdict.fix


def test_other_weights_where_nobody_recorded_an_order_are_found_and_nothing_is_said_of_it():
    plain = run_of([[in_batches(s, 8) for s in shares(shuffled(40, 1), 2)]])
    weights = [
        msgspec.structs.replace(
            plain, ranks=tuple(msgspec.structs.replace(log, digests={"weights": hashed}) for log in plain.ranks)
        )
        for hashed in "ab"
    ]
    verdict = repeatable.detect(record_of(weights[0], repeat=weights[1]))
    assert (verdict.status, verdict.reason) == ("found", "weights-differ") and "order" not in verdict.cause


def test_one_run_or_no_weights_are_not_applicable():
    once, unhashed = again(served(ORDER)), again(served(ORDER, weights=None), served(ORDER))
    assert once.status == unhashed.status == "not_applicable"
    assert (once.reason, unhashed.reason) == ("run-was-made-once", "weights-not-in-every-run")


# Straggler


def test_a_rank_that_is_always_slow_while_others_wait_is_found():
    verdict = straggler.detect(paced([[1.0] * 20] * 3 + [[4.0] * 20], [[3.2] * 20] * 3 + [[0.2] * 20]))
    assert (verdict.status, verdict.reason) == ("found", "others-wait-for-a-slow-rank")
    assert verdict.cause == "rank 3 takes 4 times as long for a step as the others, and the others wait for it"
    assert verdict.waste == pytest.approx(3.0 / 4.2 * 3 / 4)


def test_a_slow_rank_for_which_nobody_waits_is_clear_and_said_to_be_slow():
    verdict = straggler.detect(paced([[1.0] * 20] * 3 + [[4.0] * 20], [[0.1] * 20] * 4))
    assert (verdict.status, verdict.reason) == ("clear", "slow-rank-and-nobody-waits")
    assert verdict.numbers["told"].numbers["rank"] == 3


def test_a_slow_rank_for_which_nobody_waits_is_clear_also_where_messages_take_as_long_as_steps():
    assert straggler.detect(paced([[1.0] * 20] * 3 + [[4.0] * 20], [[2.0] * 20] * 4)).status == "clear"


def test_a_slow_rank_for_which_others_wait_in_part_is_inconclusive():
    verdict = straggler.detect(paced([[1.0] * 20] * 3 + [[4.0] * 20], [[1.2] * 20] * 3 + [[0.1] * 20]))
    assert (verdict.status, verdict.reason) == ("inconclusive", "slow-rank-is-waited-for-in-part")


def test_equal_ranks_are_clear_however_long_they_communicate():
    verdict = straggler.detect(paced([[1.0] * 20] * 4, [[5.0] * 20] * 4))
    assert (verdict.status, verdict.reason) == ("clear", "no-rank-is-slow")


def test_noise_that_strikes_one_rank_now_and_then_is_inconclusive():
    verdict = straggler.detect(paced([[1.0] * 20] * 3 + [[1.0, 3.0, 3.0] * 7], [[2.0] * 20] * 3 + [[0.2] * 21]))
    assert (verdict.status, verdict.reason) == ("inconclusive", "rank-slow-perhaps-by-chance")


def test_noise_that_strikes_ranks_in_turn_is_clear():
    times = [[5.0 if n % 4 == rank else 1.0 for n in range(20)] for rank in range(4)]
    verdict = straggler.detect(paced(times, [[6.0 - t for t in own] for own in times]))
    assert (verdict.status, verdict.reason) == ("clear", "slow-steps-strike-by-turns")


def test_a_few_steps_are_too_few():
    verdict = straggler.detect(paced([[1.0] * 3, [4.0] * 3], [[3.0] * 3, [0.1] * 3]))
    assert (verdict.status, verdict.reason, verdict.numbers["steps"]) == ("inconclusive", "too-few-steps-of-a-rank", 3)


def test_one_rank_or_no_communication_on_record_is_not_applicable():
    one, silent = straggler.detect(paced([[1.0] * 20], [[0.0] * 20])), straggler.detect(beside_sync(served(ORDER)))
    assert one.status == silent.status == "not_applicable"
    assert (one.reason, silent.reason) == ("one-rank-waits-for-nobody", "communication-not-timed")


# Slow now and then, or from a step on


def _sync(own):
    """[steps, ranks] of own time, as ranks that meet at each step: who is done waits for the last."""
    longest = own.max(axis=1, keepdims=True)
    return paced((own).T.tolist(), (longest - own + 0.002).T.tolist())


@pytest.mark.parametrize(
    ("how", "steps", "said"),
    [
        ({"times": 8, "share": 0.4}, 100, "takes-longer-in-some-steps"),
        ({"times": 50, "share": 0.1}, 200, "takes-longer-in-some-steps"),
        ({"times": 4, "begin": 60}, 120, "takes-longer-from-a-step-on"),
        ({"times": 4}, 30, "takes-longer"),
    ],
)
def test_a_rank_that_is_slow_in_some_of_its_steps_is_found_with_the_step_in_which_it_begins(how, steps, said):
    for seed in range(5):
        own, rank = slowed(np.random.default_rng(seed), ranks=4, steps=steps, **how)
        verdict = straggler.detect(_sync(own))
        assert verdict.status == "found"
        assert (verdict.numbers["told"].key, verdict.numbers["told"].numbers["rank"]) == (said, rank)
        assert verdict.numbers["told"].numbers.get("begin") == how.get("begin")
        assert verdict.evidence["slow_from_step"].value >= how.get("begin", 0) and 0.2 < verdict.waste <= 1


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_ranks_that_are_alike_are_never_accused_whatever_noise_does(first):
    for seed in range(first, first + 20):
        assert straggler.detect(_sync(healthy(np.random.default_rng(seed)))).status != "found"


def test_on_a_crowded_machine_a_rank_must_be_slower_to_be_called_slow_and_is_not_called_quick():
    own, _ = slowed(np.random.default_rng(0), ranks=4, steps=40, times=2)
    quiet = _sync(own)
    assert straggler.detect(quiet).status == "found"
    assert straggler.detect(crowded(quiet, 1.8)).status == "inconclusive"
    slower, _ = slowed(np.random.default_rng(0), ranks=4, steps=40, times=20)
    assert straggler.detect(crowded(_sync(slower), 1.8)).status == "found"
