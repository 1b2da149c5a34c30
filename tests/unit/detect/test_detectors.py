"""Every detector four ways: found, clear, inconclusive, not applicable; by ids, and by hashes of the content alone."""

import itertools
import random
from collections import Counter

import msgspec
import pytest

from labkit import detect
from labkit.detect.catalogue import said
from labkit.errors import UnknownName
from labkit.record.schema import Seen

from ..builders import content_of, in_batches, record_of, run_of, shares, shuffled
from . import readings

INNOCENT = (
    readings.fixed,
    readings.in_stored_order,
    readings.sampler_drop_last,
    readings.loader_drop_last,
    readings.filled_from_the_start,
    readings.filled_strided,
)
SAME = (readings.identical, readings.own_shuffles, readings.everyone_is_rank_0, readings.unsharded)
WITH_REPLACEMENT = (readings.with_replacement, readings.all_with_replacement)
SIZES = (97, 120, 301)  # odd and even; 97 divides by no number of ranks but 1
BATCHES = (8, 16)

by_ids_and_by_content = pytest.mark.parametrize("ids", [True, False], ids=["by ids", "by content"])
over_ranks = pytest.mark.parametrize("ranks", [2, 3, 4])


def named(reading) -> str:
    return reading.__name__


def ask(name, reading, **given):
    return detect.detector(name)(record_of(run_of(reading, **given)))


def statuses(name, how, ranks, *, sizes=SIZES, batches=BATCHES, cap=None, seeds=range(1), **given) -> Counter:
    """The statuses of one detector's verdicts over sizes and batches; those of other cases should not differ."""
    found = Counter()
    for size in sizes:
        for batch in batches:
            for seed in seeds:
                reading = how(size, ranks, batch, seed)
                if cap:
                    reading = [[of_rank[:cap] for of_rank in reading[0]]]
                facts = {"dataset_size": size, "batch_size": batch} | given
                found[ask(name, reading, **facts).status] += 1
    return found


def only(found: Counter) -> str:
    assert len(found) == 1, f"several statuses: {found}"
    return next(iter(found))


# Do the ranks read the same data?


@by_ids_and_by_content
@over_ranks
@pytest.mark.parametrize("how", SAME, ids=named)
def test_ranks_that_read_the_same_are_found(how, ranks, ids):
    assert only(statuses("rank-duplicates", how, ranks, ids=ids)) == "found"


@by_ids_and_by_content
@over_ranks
def test_shards_that_overlap_are_found(ranks, ids):
    assert only(statuses("rank-duplicates", readings.overlapping_shards, ranks, ids=ids, sizes=(200, 301))) == "found"


@over_ranks
def test_a_sampler_seeded_by_rank_is_found_by_ids_and_left_open_by_content(ranks):
    """It reads as many samples as there are, so equal samples in the data would look like it."""
    assert only(statuses("rank-duplicates", readings.own_permutations, ranks)) == "found"
    assert only(statuses("rank-duplicates", readings.own_permutations, ranks, ids=False)) == "inconclusive"


@by_ids_and_by_content
@over_ranks
@pytest.mark.parametrize("how", [*INNOCENT, readings.double_sharded], ids=named)
def test_ranks_that_share_the_data_out_are_clear(how, ranks, ids):
    assert only(statuses("rank-duplicates", how, ranks, ids=ids)) == "clear"


@by_ids_and_by_content
@over_ranks
@pytest.mark.parametrize("how", WITH_REPLACEMENT, ids=named)
def test_ranks_that_draw_with_replacement_are_not_accused(how, ranks, ids):
    assert only(statuses("rank-duplicates", how, ranks, ids=ids)) == "inconclusive"


@by_ids_and_by_content
@over_ranks
@pytest.mark.parametrize("batch", [1, 2, 8])
def test_no_tiny_data_set_accuses_a_sampler(batch, ranks, ids):
    for how in (readings.fixed, readings.sampler_drop_last, *WITH_REPLACEMENT):
        sizes = [size for size in range(1, 18) if how is not readings.sampler_drop_last or size >= ranks]
        assert not statuses("rank-duplicates", how, ranks, sizes=sizes, batches=[batch], ids=ids)["found"]


def test_a_sampler_with_more_ranks_than_samples_repeats_and_is_clear():
    assert ask("rank-duplicates", [[[[0]], [[1]], [[0]], [[1]]]], dataset_size=2).status == "clear"


@over_ranks
def test_one_filled_batch_is_left_open(ranks):
    reading = readings.filled_from_the_start(ranks * 8 - 5, ranks, 8)
    verdict = ask("rank-duplicates", reading, dataset_size=ranks * 8 - 5)
    assert (verdict.status, verdict.reason, verdict.numbers) == ("inconclusive", "one-filled-step", {"repeated": 5})


@over_ranks
@pytest.mark.parametrize("how", INNOCENT, ids=named)
@pytest.mark.parametrize(
    "content",
    [lambda i: content_of(i // 2), lambda i: 7, lambda i: content_of(i % 97 % 2), lambda i: content_of(max(i, 5))],
    ids=["each sample twice", "all samples equal", "two different samples", "six samples equal"],
)
def test_data_that_really_repeat_are_not_taken_for_ranks_that_do(content, how, ranks):
    found = statuses("rank-duplicates", how, ranks, ids=False, content=content)
    assert not found["found"], found


@over_ranks
def test_neighbours_that_are_equal_are_not_taken_for_identical_ranks(ranks):
    """Data tiled W times, unshuffled, through a proper sampler: the ranks do read equal content at every step."""
    given = {"ids": False, "content": lambda i: content_of(i // ranks)}
    for how in (readings.fixed, readings.in_stored_order):
        assert only(statuses("rank-duplicates", how, ranks, **given)) == "inconclusive"


@over_ranks
def test_identical_ranks_are_found_even_where_all_samples_come_twice(ranks):
    content = {"ids": False, "content": lambda i: content_of(i // 2)}
    assert only(statuses("rank-duplicates", readings.identical, ranks, **content)) == "found"


@by_ids_and_by_content
@over_ranks
@pytest.mark.parametrize("cap", [1, 2, 3])
def test_a_capped_run_is_never_enough_to_accuse_a_sampler(cap, ranks, ids):
    for how in (readings.fixed, readings.sampler_drop_last, readings.with_replacement):
        found = statuses("rank-duplicates", how, ranks, cap=cap, complete=False, ids=ids, seeds=range(3))
        assert not found["found"], (how.__name__, found)


@over_ranks
@pytest.mark.parametrize("cap", [1, 2, 3])
def test_a_capped_run_over_data_that_repeat_is_not_enough_either(cap, ranks):
    given = {"complete": False, "ids": False, "content": lambda i: content_of(i // 2)}
    assert not statuses("rank-duplicates", readings.fixed, ranks, cap=cap, seeds=range(5), **given)["found"]


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_run_capped_in_the_very_step_that_pads_is_not_accused(ranks):
    """Its last step holds the repeats of a sampler or a loader, and nothing says that the epoch ended there."""
    for how in (readings.fixed, readings.filled_from_the_start, readings.filled_strided):
        assert ask("rank-duplicates", how(1797, ranks, 32)[:1], complete=False, dataset_size=1797).status == "clear"


@by_ids_and_by_content
@over_ranks
def test_three_steps_are_enough_to_find_identical_ranks(ranks, ids):
    found = statuses("rank-duplicates", readings.identical, ranks, cap=3, complete=False, ids=ids)
    assert only(found) == "found"


def test_one_sample_a_step_is_enough_to_find_identical_ranks():
    assert ask("rank-duplicates", readings.identical(40, 2, 1), ids=False, dataset_size=40).status == "found"


@by_ids_and_by_content
def test_few_steps_without_a_meeting_say_nothing(ids):
    reading = [[[[0, 1]], [[2, 3]]]]
    assert ask("rank-duplicates", reading, complete=False, ids=ids, dataset_size=1797).status == "inconclusive"
    assert ask("rank-duplicates", reading, complete=False, ids=ids).status == "inconclusive"


@by_ids_and_by_content
def test_half_an_epoch_without_a_meeting_is_clear(ids):
    reading = [[of_rank[:6] for of_rank in readings.fixed(301, 4, 8)[0]]]
    assert ask("rank-duplicates", reading, complete=False, ids=ids, dataset_size=301).status == "clear"


def test_the_size_of_the_data_need_not_be_known():
    for how, status in ((readings.fixed, "clear"), (readings.identical, "found"), (readings.own_shuffles, "found")):
        assert ask("rank-duplicates", how(301, 4, 16)).status == status


def test_one_rank_and_no_samples_are_not_applicable():
    for reading, reason in ((readings.fixed(97, 1, 8), "no-other-rank-reads"), ([[[], []]], "no-samples-recorded")):
        verdict = ask("rank-duplicates", reading)
        assert (verdict.status, verdict.reason) == ("not_applicable", reason)


@pytest.mark.parametrize("name", ["rank-duplicates", "worker-duplicates"])
def test_an_epoch_of_batches_that_hold_nothing_says_nothing(name):
    verdict = ask(name, [[[[]], [[]]], [[[0, 1]], [[2, 3]]]], complete=False, dataset_size=1797)
    assert (verdict.status, verdict.reason) == ("inconclusive", "nothing-read-in-epoch")


def test_a_few_equal_samples_that_ranks_share_out_are_clear():
    """16 of 1,500 samples are equal in fours: by hashes of the content ranks read each other's, and yet not too much."""
    given = {"ids": False, "content": lambda i: content_of(i // 4 * 4 if i < 16 else i)}
    verdict = ask("rank-duplicates", readings.fixed(1500, 2, 8)[:1], dataset_size=1500, **given)
    assert (verdict.status, verdict.reason) == ("clear", "shared-out-but-equal-samples")


def test_identical_ranks_waste_all_but_one():
    verdict = ask("rank-duplicates", readings.identical(120, 4, 10), dataset_size=120, loader_where="train.py:7")
    assert (verdict.waste, verdict.where) == (0.75, "train.py:7")
    assert verdict.evidence["unique_share_of_global_batch"].value == 0.25
    assert verdict.evidence["identical_steps"].value == 1.0


def test_the_cause_tells_identical_ranks_from_own_orders_and_from_overlap():
    identical, own, overlap = (
        ask("rank-duplicates", how(200, 4, 10), dataset_size=200)
        for how in (readings.identical, readings.own_shuffles, readings.overlapping_shards)
    )
    assert (identical.reason, identical.numbers) == ("ranks-identical", {"ranks": 4})
    assert (own.reason, own.numbers) == ("each-rank-reads-all", {"ranks": 4, "times": 4.0})
    read = overlap.evidence["samples_per_epoch"].value
    assert overlap.reason == "shares-overlap" and overlap.numbers == {"shared": 48, "share": 48 / read}
    assert "do the work of one" in identical.cause and "4.0 times the data set" in own.cause


# Does one rank read a sample several times in an epoch?


@by_ids_and_by_content
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("workers", [2, 3, 4])
@pytest.mark.parametrize("how", [readings.unsharded, readings.unsharded_workers], ids=named)
def test_workers_that_each_read_it_all_are_found(how, workers, ranks, ids):
    for size in (97, 120):
        reading = how(size, ranks, 8, workers=workers)
        verdict = ask("worker-duplicates", reading, ids=ids, dataset_size=size, workers=workers)
        assert (verdict.status, verdict.waste) == ("found", 1 - 1 / workers)
        assert (verdict.reason, verdict.numbers) == ("each-worker-yields-all", {"times": workers})


@by_ids_and_by_content
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("how", [*INNOCENT, readings.identical, readings.own_shuffles, readings.double_sharded], ids=named)
def test_ranks_that_read_a_sample_at_most_once_are_clear(how, ranks, ids):
    assert only(statuses("worker-duplicates", how, ranks, ids=ids)) == "clear"


@by_ids_and_by_content
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_drawing_with_replacement_is_not_taken_for_workers(ranks, ids):
    given = {"ids": ids, "sizes": (1, 2, 3, 5, 97), "batches": (1, 8)}
    for how in WITH_REPLACEMENT:
        assert not statuses("worker-duplicates", how, ranks, seeds=range(5), **given)["found"]
    # a few hundred draws of 97 or 120 surely repeat
    assert only(statuses("worker-duplicates", readings.all_with_replacement, ranks, ids=ids)) == "inconclusive"


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("how", [*INNOCENT, readings.own_shuffles], ids=named)
@pytest.mark.parametrize("content", [lambda i: content_of(i // 2), lambda i: 7], ids=["each twice", "all equal"])
def test_data_that_really_repeat_are_not_taken_for_workers(content, how, ranks):
    found = statuses("worker-duplicates", how, ranks, ids=False, content=content)
    assert not found["found"], found


@by_ids_and_by_content
@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("steps", [3, 12])
def test_one_batch_read_at_every_step_is_named_as_what_it_is(steps, ranks, ids):
    reading = [[share[:1] * steps for share in readings.fixed(97, ranks, 8)[0]]]
    verdict = ask("worker-duplicates", reading, ids=ids, dataset_size=97)
    assert (verdict.status, verdict.waste) == ("found", 1 - 1 / steps)
    assert (verdict.reason, verdict.numbers) == ("one-batch-again-and-again", {"steps": steps, "samples": 8})
    assert verdict.cause == f"every one of {steps} steps reads the same 8 samples"


def test_two_steps_or_batches_in_which_one_sample_differs_are_not_one_batch():
    batch = list(range(8))
    for reading in ([batch] * 2, [batch, batch, [*batch[:7], 9]]):
        assert ask("worker-duplicates", [[reading]], dataset_size=97).reason != "one-batch-again-and-again"


@by_ids_and_by_content
@pytest.mark.parametrize("declared", [2, 0])
def test_workers_of_one_rank_alone_are_found_and_it_is_named(declared, ids):
    right, wrong = readings.fixed(240, 2, 8)[0], readings.unsharded_workers(240, 2, 8, workers=2)[0]
    verdict = ask("worker-duplicates", [[right[0], wrong[1]]], ids=ids, dataset_size=240, workers=declared)
    if not ids:
        assert verdict.status != "clear", "by hashes it may be copies in the data"
        return
    reason = "each-worker-of-one-rank-yields-all" if declared else "every-sample-several-times-on-one-rank"
    assert (verdict.status, verdict.reason, verdict.numbers) == ("found", reason, {"times": 2, "rank": 1})
    assert verdict.waste == pytest.approx(0.5 * 2 / 3), "half of what this rank reads, which is two thirds of all"
    assert verdict.cause.startswith("rank 1 reads every sample 2 times in one epoch")
    assert ("each of its 2 workers yields all of its data" in verdict.cause) == bool(declared)


def test_a_few_equal_samples_among_many_are_clear():
    given = {"ids": False, "content": lambda i: content_of(max(i, 2))}
    assert only(statuses("worker-duplicates", readings.fixed, 1, sizes=(301, 600), **given)) == "clear"


def test_a_run_that_ended_before_the_epoch_may_still_repeat():
    reading = [[of_rank[:2] for of_rank in readings.fixed(97, 2, 8)[0]]]
    assert ask("worker-duplicates", reading, complete=False, dataset_size=97).status == "inconclusive"
    assert ask("worker-duplicates", [[[]]]).status == "not_applicable"


# Is all of the data read in an epoch?


@by_ids_and_by_content
@over_ranks
def test_a_loader_that_is_sharded_twice_is_found(ranks, ids):
    found = statuses("coverage", readings.double_sharded, ranks, ids=ids, sizes=(64, 97, 120, 301), batches=(4, 8, 16, 32))
    assert only(found) == "found"


@over_ranks
def test_samples_that_are_replaced_by_others_are_found_by_ids_and_left_open_by_content(ranks):
    for how in (readings.own_permutations, readings.everyone_is_rank_0):
        assert only(statuses("coverage", how, ranks)) == "found"
        assert only(statuses("coverage", how, ranks, ids=False)) == "inconclusive"


@by_ids_and_by_content
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("how", [*INNOCENT, readings.identical, readings.own_shuffles, readings.unsharded], ids=named)
def test_a_dropped_tail_is_no_lack_of_coverage(how, ranks, ids):
    assert only(statuses("coverage", how, ranks, ids=ids)) == "clear"


@by_ids_and_by_content
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_drawing_with_replacement_is_no_lack_of_coverage(ranks, ids):
    assert only(statuses("coverage", readings.with_replacement, ranks, ids=ids, seeds=range(3))) == "inconclusive"
    assert not statuses("coverage", readings.with_replacement, ranks, sizes=range(1, 16), ids=ids, seeds=range(3))["found"]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("how", INNOCENT, ids=named)
@pytest.mark.parametrize("content", [lambda i: content_of(i // 2), lambda i: 7], ids=["each twice", "all equal"])
def test_data_that_really_repeat_lack_nothing(content, how, ranks):
    assert not statuses("coverage", how, ranks, ids=False, content=content)["found"]


def test_a_tail_of_a_whole_global_batch_is_too_much_to_be_dropped():
    """With a last batch shorter than the others, nothing but the sampler dropped: fewer than W samples."""
    assert ask("coverage", [[[list(range(8))], [list(range(8, 16))]]], dataset_size=31, batch_size=8).status == "clear"
    assert ask("coverage", [[[list(range(8))], [list(range(8, 16))]]], dataset_size=32, batch_size=8).status == "found"
    assert ask("coverage", [[[list(range(7))], [list(range(8, 15))]]], dataset_size=16, batch_size=8).status == "found"


def test_double_sharding_names_its_share():
    verdict = ask("coverage", readings.double_sharded(64, 4, 4), dataset_size=64)
    assert (verdict.reason, verdict.numbers) == ("sharded-twice", {"read": 16, "samples": 64, "ranks": 4})
    assert "16 samples of 64, about 1/4" in verdict.cause
    assert (verdict.evidence["coverage"].value, verdict.evidence["missing_samples"].value) == (0.25, 48)


def test_coverage_of_a_part_of_an_epoch_is_open_unless_all_was_read():
    reading = [[of_rank[:2] for of_rank in readings.fixed(97, 2, 8)[0]]]
    assert ask("coverage", reading, complete=False, dataset_size=97).status == "inconclusive"
    assert ask("coverage", readings.fixed(97, 2, 8), complete=False, dataset_size=97).status == "clear"


def test_epochs_without_a_batch_are_found():
    verdict = ask("coverage", [[[], []]], dataset_size=9)
    assert (verdict.status, verdict.reason) == ("found", "nothing-is-read") and "drop_last" in verdict.fix


@by_ids_and_by_content
def test_what_the_first_epoch_leaves_out_and_a_later_one_reads_is_a_curriculum(ids):
    order = shuffled(200, 3)
    reading = [[in_batches(order[rank:part:2], 8) for rank in range(2)] for part in (100, 150, 200)]
    verdict = ask("coverage", reading, ids=ids, dataset_size=200)
    assert (verdict.status, verdict.reason) == ("clear", "read-whole-later")
    assert verdict.numbers == {"epoch": 0, "missing": 100, "whole": 2}
    assert ask("coverage", reading[:2], ids=ids, dataset_size=200).status == "found"


def test_batches_of_as_many_tokens_as_fit_may_drop_one_a_rank_too():
    sizes = [8, 5, 9, 4, 7, 6, 9, 3] * 3
    order, starts = shuffled(sum(sizes), 1), [sum(sizes[:place]) for place in range(len(sizes))]
    batches = [order[start : start + length] for start, length in zip(starts, sizes, strict=True)][:-2]
    assert ask("coverage", [[batches[0::2], batches[1::2]]], dataset_size=len(order)).status == "clear"
    assert ask("coverage", [[batches[0:-4:2], batches[1:-4:2]]], dataset_size=len(order)).status == "found"


def test_coverage_needs_samples_and_the_size_of_the_data():
    verdicts = [ask("coverage", readings.fixed(97, 2, 8)), ask("coverage", [[[], []]], complete=False, dataset_size=9)]
    assert [(v.status, v.reason) for v in verdicts] == [
        ("not_applicable", "dataset-size-not-recorded"),
        ("not_applicable", "reads-not-recorded"),
    ]


# Does each epoch come in a new order?


@by_ids_and_by_content
def test_some_ranks_that_read_the_same_are_found_and_named(ids):
    def two_of_four(epoch):
        own = [in_batches(share, 8) for share in shares(shuffled(200, epoch), 4)]
        return [own[0], own[1], own[2], own[2]]

    verdict = ask("rank-duplicates", [two_of_four(0), two_of_four(1)], ids=ids, dataset_size=200)
    assert (verdict.status, verdict.reason) == ("found", "some-ranks-identical")
    assert verdict.numbers == {"groups": [said("these-ranks", ranks=[2, 3])]}
    assert verdict.cause.startswith("ranks 2 and 3 read the same samples in the same order, at every step: ")


def test_ranks_that_read_equal_copies_in_stored_order_are_not_called_the_same():
    reading = [[in_batches(share, 8) for share in shares(list(range(200)), 4)]] * 2
    assert (
        ask("rank-duplicates", reading, ids=False, content=lambda i: content_of(i // 2), dataset_size=200).status != "found"
    )


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_a_list_that_holds_some_samples_several_times_is_no_overlap(ranks):
    for seed, times in itertools.product(range(5), (2, 3)):
        listed = [*range(500), *(list(range(0, 500, 4)) * (times - 1))]
        order = random.Random(seed).sample(listed, len(listed))
        reading = [[in_batches(share, 8) for share in shares(order, ranks)]]
        assert ask("rank-duplicates", reading, dataset_size=500).status == "inconclusive"


@by_ids_and_by_content
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_an_order_that_repeats_is_found(ranks, ids):
    assert only(statuses("order", readings.same_order, ranks, ids=ids)) == "found"
    assert only(statuses("order", readings.in_stored_order, ranks, ids=ids)) == "found"


@by_ids_and_by_content
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("how", [readings.fixed, readings.identical, readings.own_shuffles, *WITH_REPLACEMENT], ids=named)
def test_a_new_order_is_clear(how, ranks, ids):
    assert only(statuses("order", how, ranks, ids=ids)) == "clear"


def test_one_rank_that_repeats_its_order_is_found():
    first, second = readings.fixed(97, 4, 8)
    verdict = ask("order", [first, [first[0], *second[1:]]], dataset_size=97)
    assert (verdict.status, verdict.evidence["ranks_that_repeat"].value) == ("found", 1)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_no_shuffle_is_told_from_a_sampler_that_never_hears_of_the_epoch(ranks):
    """The padding at the end of an unshuffled share does not hide that it ascends."""
    assert ask("order", readings.in_stored_order(97, ranks, 8)).reason == "not-shuffled"
    assert ask("order", readings.same_order(97, ranks, 8)).reason == "second-epoch-repeats-order"


def test_an_equal_order_of_few_samples_may_be_an_accident():
    assert ask("order", readings.same_order(9, 1, 4)).status == "inconclusive"
    assert ask("order", readings.same_order(97, 2, 8), ids=False, content=lambda i: 7).status == "inconclusive"


@by_ids_and_by_content
def test_shares_that_change_hands_do_not_make_a_new_order(ids):
    (first, _), swapped = readings.same_order(97, 2, 8), readings.same_order(97, 2, 8)[0][::-1]
    verdict = ask("order", [first, swapped], ids=ids)
    assert (verdict.status, verdict.reason) == ("found", "second-epoch-repeats-global-batches")


def test_global_batches_that_are_dealt_out_anew_in_a_later_epoch_are_named():
    first, second = readings.fixed(97, 2, 8)
    verdict = ask("order", [first, second, second[::-1]])
    assert (verdict.status, verdict.reason) == ("found", "global-batches-repeat")
    assert verdict.cause.startswith("epoch 2 repeats epoch 1's global batches one by one")


def test_epochs_that_repeat_later_are_found_and_named():
    (first, second) = readings.fixed(97, 2, 8)
    verdict = ask("order", [first, second, second, second])
    assert (verdict.status, verdict.reason) == ("found", "order-repeats")
    assert verdict.numbers == {"first": said("epoch-number", epoch=1), "second": said("epoch-number", epoch=2)}
    assert verdict.cause == (
        "epoch 2 repeats epoch 1's order exactly: the sampler never hears which epoch it is, in 2 of 3 epochs that have one "
        "before them"
    )


def test_an_epoch_of_one_step_shows_that_its_order_repeats_and_not_that_it_matters():
    verdict = ask("order", readings.same_order(64, 2, 32))
    assert (verdict.status, verdict.reason) == ("inconclusive", "epoch-is-one-step")
    assert ask("order", readings.fixed(64, 2, 32)).status == "clear"


@by_ids_and_by_content
def test_one_batch_again_and_again_has_no_order(ids):
    first = [[share[:1] * 5 for share in readings.fixed(97, 2, 16)[0]]]
    assert ask("order", first * 3, ids=ids, dataset_size=97).status == "inconclusive"


def test_one_epoch_has_no_second_order():
    assert ask("order", readings.fixed(97, 2, 8)[:1]).status == "not_applicable"


def test_a_second_epoch_cut_short_is_compared_as_far_as_it_goes():
    first, second = readings.same_order(97, 2, 16)
    assert ask("order", [first, [of_rank[:1] for of_rank in second]], complete=False).status == "found"


# Is validation data trained on?


def split(size: int, seed: int) -> tuple[list[int], list[int]]:
    order = shuffled(size, seed)
    return order[size // 5 :], order[: size // 5]


def leaky_run(size, ranks, *, leaky, **given):
    """Each rank trains, in two epochs, on its share of what its split leaves."""
    splits = [split(size, seed=rank + 1 if leaky else 1) for rank in range(ranks)]
    reading = [
        [in_batches(random.Random(epoch).sample(s[0], len(s[0]))[rank::ranks], 8) for rank, s in enumerate(splits)]
        for epoch in range(2)
    ]
    return record_of(run_of(reading, validation=[s[1] for s in splits], dataset_size=size - size // 5, **given))


@by_ids_and_by_content
@over_ranks
def test_a_split_of_each_ranks_own_is_found(ranks, ids):
    for size in (300, 301):
        verdict = detect.detector("validation-leak")(leaky_run(size, ranks, leaky=True, ids=ids))
        assert verdict.status == "found" and verdict.evidence["val_leak"].value > 0.2


@by_ids_and_by_content
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_one_split_for_all_is_clear(ranks, ids):
    for size in (20, 97, 300):
        assert detect.detector("validation-leak")(leaky_run(size, ranks, leaky=False, ids=ids)).status == "clear"


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("content", [lambda i: content_of(i // 2), lambda i: 7], ids=["each twice", "all equal"])
def test_copies_in_the_data_are_not_taken_for_a_leak(content, ranks):
    for size in (20, 97, 300, 1000):
        record = leaky_run(size, ranks, leaky=False, ids=False, content=content)
        assert detect.detector("validation-leak")(record).status == "inconclusive"


def test_a_leak_is_found_in_spite_of_a_few_copies():
    record = leaky_run(1000, 4, leaky=True, ids=False, content=lambda i: content_of(max(i, 5)))
    assert detect.detector("validation-leak")(record).status == "found"


def test_a_pass_that_is_recorded_batch_by_batch_and_twice_an_epoch_shows_its_leak_as_well():
    record = leaky_run(300, 2, leaky=True, ids=False)
    logs = []
    for log in record.run.ranks:
        (whole,) = log.seen
        batches = [Seen("validation", 0, whole.digests[at : at + 8]) for at in range(0, len(whole.digests), 8)]
        logs.append(msgspec.structs.replace(log, seen=(*batches, *batches)))
    run = msgspec.structs.replace(record.run, ranks=tuple(logs))
    assert detect.detector("validation-leak")(record_of(run)).status == "found"


@pytest.mark.parametrize("name", ["rank-duplicates", "worker-duplicates", "coverage", "order", "validation-leak"])
@pytest.mark.parametrize("how", [readings.fixed, readings.own_shuffles, readings.same_order], ids=named)
def test_nothing_is_clear_by_hashes_of_what_changes_each_time_that_it_is_read(name, how):
    """Augmentation, or padding to the longest of a batch."""
    times = iter(range(10**6))
    verdict = ask(name, how(97, 2, 8), ids=False, content=lambda i: content_of(next(times)), dataset_size=97,
                  validation=[[1, 2, 3], [4, 5]])  # fmt: skip
    assert verdict.status == "inconclusive" and verdict.reason in ("contents-change", "no-sample-comes-again")
    assert ask(name, how(97, 2, 8), validation=[[1], [2]], dataset_size=97).status != "inconclusive", "ids decide"


def test_a_leak_by_indices_that_overlap_is_not_laid_to_the_seed():
    reading = readings.fixed(97, 2, 8)
    for validation in ([range(90, 110)] * 2, [range(90, 110, 2), range(91, 110, 2)]):
        verdict = ask("validation-leak", reading, validation=[list(one) for one in validation], dataset_size=97)
        assert (verdict.status, verdict.reason) == ("found", "split-overlaps") and "seed" not in verdict.fix
    seeded = detect.detector("validation-leak")(leaky_run(97, 2, leaky=True))
    assert seeded.reason == "split-differs-by-rank" and "seed + rank" in seeded.fix


def test_no_leak_in_a_part_of_an_epoch_says_nothing():
    assert detect.detector("validation-leak")(leaky_run(97, 2, leaky=False, complete=False)).status == "inconclusive"


def test_a_run_without_validation_cannot_leak():
    assert ask("validation-leak", readings.fixed(97, 2, 8)).status == "not_applicable"


# All of them


@pytest.mark.parametrize("name", detect.names())
def test_each_verdict_names_its_question_and_gives_a_cause_and_where_it_finds_something_a_fix(name):
    for how in (readings.fixed, readings.unsharded, readings.double_sharded, readings.same_order):
        for given in ({}, {"ids": False, "complete": False}):
            verdict = ask(name, how(97, 2, 8), dataset_size=97, **given)
            assert verdict.detector == name and verdict.question.endswith("?") and verdict.cause
            assert verdict.fix or verdict.status == "clear"


def test_detectors_are_found_by_their_files():
    assert {"coverage", "order", "rank-duplicates", "validation-leak", "worker-duplicates"} <= set(detect.names())
    assert not {"verdict", "cost", "explanations", "over_epochs"} & set(detect.names())


def test_an_unknown_detector_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownName, match="Did you mean 'coverage'"):
        detect.detector("coverag")
