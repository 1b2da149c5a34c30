"""Measures against values worked out by hand."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from torch.utils.data import DistributedSampler

from labkit.detect import runs
from labkit.detect.loss import loss_curve
from labkit.detect.reads import measures
from labkit.record.quantity import Quantity
from labkit.record.schema import Event, RankLog, Run

from ..builders import content_of, head, in_batches, record_of, run_of, shares, span, step
from ..quick import quick

TWO_RANKS = [
    [[[0, 1], [2, 3]], [[0, 4], [5, 5]]],  # epoch 0: rank 0, rank 1
    [[[0, 1], [3, 2]], [[4, 0], [5, 5]]],
]


def seen(reading, **given):
    return measures.first_epoch(run_of(reading, **given))


@pytest.mark.parametrize("ids", [True, False])
def test_reads_count_samples_copies_and_who_read_them(ids):
    found = seen(TWO_RANKS, ids=ids)
    assert (found.epoch, found.key, found.world_size, found.complete) == (0, "id" if ids else "digest", 2, True)
    assert (found.total, found.unique) == (8, 6)
    assert sorted(found.copies[1].tolist()) == [1, 1, 1, 1, 2, 2]
    assert sorted(found.ranks_reading.tolist()) == [1, 1, 1, 1, 1, 2]
    assert (found.across_ranks, found.within_ranks, found.repeats_of_shared) == (1, 1, 1)
    assert [len(keys) for keys in found.global_batches] == [4, 4]
    assert found.unique_shares.tolist() == [0.75, 0.75]


BATCHES = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), max_size=4)


@quick
@given(of_ranks=st.lists(BATCHES, min_size=1, max_size=4), ids=st.booleans())
def test_reads_are_counted_as_a_counter_counts_them(of_ranks, ids):
    every = Counter(i for batches in of_ranks for batch in batches for i in batch)
    assume(every)
    own = [Counter(i for batch in batches for i in batch) for batches in of_ranks]
    readers = {i: sum(i in one for one in own) for i in every}
    found = seen([of_ranks], ids=ids)
    order = sorted(every, key=None if ids else content_of)
    assert (found.total, found.unique) == (every.total(), len(every))
    assert found.copies[1].tolist() == [every[i] for i in order]
    assert found.ranks_reading.tolist() == [readers[i] for i in order]
    assert found.across_ranks == sum(readers.values()) - len(every)
    assert found.within_ranks == sum(one.total() - len(one) for one in own)
    assert found.repeats_of_shared == sum(every[i] - 1 for i in every if readers[i] > 1)
    steps = max(map(len, of_ranks))
    together = [[i for batches in of_ranks if at < len(batches) for i in batches[at]] for at in range(steps)]
    assert found.unique_shares.tolist() == pytest.approx([len(set(batch)) / len(batch) for batch in together])
    same = sum(all(batches[at : at + 1] == of_ranks[0][at : at + 1] for batches in of_ranks) for at in range(steps))
    assert found.identical_steps == (same / steps if len(of_ranks) > 1 else 0)


@quick
@given(
    size=st.integers(1, 40), ranks=st.integers(1, 7), batch=st.integers(1, 6), seed=st.integers(0, 99), drop=st.booleans()
)
def test_the_padding_is_what_torchs_sampler_repeats_and_no_more(size, ranks, batch, seed, drop):
    how = {"num_replicas": ranks, "shuffle": True, "seed": seed, "drop_last": drop}
    own = [list(DistributedSampler(range(size), rank=rank, **how)) for rank in range(ranks)]
    assume(any(own))
    found = seen([[in_batches(ids, batch) for ids in own]], dataset_size=size)
    expected = measures.sampler_padding(size, ranks)
    assert 0 <= expected < ranks and (size + expected) % ranks == 0
    dropped = size % ranks if drop else 0
    assert found.unique == size - dropped and found.total - found.unique == (0 if drop else expected)
    assert measures.padding(found, size) == (0 if drop else expected)
    assert measures.rank_overlap(found, size) == 0


def test_keys_keep_the_order_of_reading_and_are_integers():
    found = seen(TWO_RANKS)
    assert [keys.tolist() for keys in found.of_rank] == [[0, 1, 2, 3], [0, 4, 5, 5]]
    assert seen(TWO_RANKS, ids=False).of_rank[0].tolist() == [content_of(i) for i in range(4)]


def test_a_rank_that_reads_nothing_does_not_turn_ids_into_floats():
    found = seen([[[[3, 1]], []]])
    assert found.all_keys.dtype == np.int64 and found.total == 2
    assert (found.identical_steps, found.full_steps.tolist()) == (0.0, [False])


def test_ids_are_used_only_where_every_step_has_them():
    with_ids, without = run_of(TWO_RANKS), run_of(TWO_RANKS, ids=False)
    mixed = Run("variant", (with_ids.ranks[0], without.ranks[1]), 1.0)
    assert measures.first_epoch(mixed).key == "digest"
    assert measures.first_epoch(with_ids, key="digest").key == "digest"


def test_an_epoch_is_complete_when_every_rank_reached_its_end():
    ended, cut = run_of(TWO_RANKS), run_of(TWO_RANKS, complete=False)
    assert not measures.first_epoch(cut).complete
    assert not measures.first_epoch(Run("variant", (ended.ranks[0], cut.ranks[1]), 1.0)).complete


def test_a_run_without_samples_has_no_epoch():
    empty = run_of([[[], []]])
    assert (measures.epochs(empty), measures.first_epoch(empty), measures.order_repeats(empty)) == ([], None, None)
    assert measures.data_measures(record_of(empty)) == {}


@pytest.mark.parametrize(
    ("reading", "share"),
    [
        ([[[[0, 1], [2, 3]], [[0, 1], [2, 3]]]], 1.0),
        ([[[[0, 1], [2, 3]], [[0, 1], [3, 2]]]], 0.5),  # the order counts
        ([[[[0], [1]], [[0], [1]]]], 1.0),
        ([[[[0, 1], [2, 3]], [[0, 1]]]], 0.5),  # a step that one rank lacks is not the same
        ([[[[0, 1], [2, 3]]]], 0.0),  # one rank is no copy of itself
    ],
)
def test_identical_steps_are_those_in_which_all_ranks_read_the_same_in_the_same_order(reading, share):
    assert seen(reading).identical_steps == share


def test_the_unique_share_leaves_out_steps_that_are_not_full():
    found = seen([[[[0, 1], [2]], [[0, 3], [2]]]])
    assert found.full_steps.tolist() == [True, False]
    assert (found.unique_shares.tolist(), found.unique_share_of_global_batch) == ([0.75, 0.5], 0.75)


@pytest.mark.parametrize(
    ("of_rank", "times"),
    [([0, 1, 2], 1), ([0, 1, 0, 1], 2), ([0, 0, 0, 1, 1, 1], 3), ([0, 0, 1], None), ([0, 1, 1, 2], None), ([], None)],
)
def test_even_repeats_are_how_often_each_sample_is_read(of_rank, times):
    assert measures.reads(run_of([[[of_rank]]]), 0).even_repeats == times


@pytest.mark.parametrize("size", [1, 2, 7, 8, 97, 301, 1797])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5])
def test_padding_is_what_makes_the_shares_equal_and_no_more(size, ranks):
    assert measures.sampler_padding(size, ranks) == math.ceil(size / ranks) * ranks - size
    found = seen([[in_batches(share, 4) for share in shares(list(range(size)), ranks)]])
    assert measures.padding(found, size) == measures.sampler_padding(size, ranks)
    assert (found.unique, found.total) == (size, size + measures.sampler_padding(size, ranks))
    assert measures.rank_overlap(found, size) == 0


def test_repeats_that_are_not_the_samplers_are_not_padding():
    assert measures.padding(seen([[[[0, 1, 2]], [[2, 3, 4]]]]), 5) == 1
    assert measures.padding(seen([[[[0, 1, 2]], [[2, 3, 3]]]]), 5) == 0  # a sample is missing
    assert measures.padding(seen([[[[0, 1, 2, 3]], [[2, 3, 4, 0]]]]), 5) == 0  # too many
    assert measures.padding(seen([[[[0, 1, 2]], [[2, 3, 4]]]]), None) == 0


def test_filling_repeats_only_in_a_last_batch_that_is_full():
    assert measures.filling(seen([[[[0, 1], [4, 0]], [[2, 3], [1, 2]]]]), 5) == 3
    assert measures.filling(seen([[[[0, 1], [4, 0]], [[2, 3], [1]]]]), 5) == 0  # not full
    assert measures.filling(seen([[[[0, 1], [4, 0]], [[1, 3], [1, 2]]]]), 5) == 0  # repeats before
    assert measures.filling(seen([[[[0, 1]], [[2, 0]]]]), 3) == 0  # one step
    assert measures.filling(seen([[[[0, 1], [4, 5]], [[2, 3], [6, 7]]]]), 8) == 0  # nothing to fill


def test_rank_overlap_is_the_share_of_samples_that_several_ranks_read():
    assert measures.rank_overlap(seen([[[[0, 1]], [[0, 1]]]]), 2) == 1.0
    assert measures.rank_overlap(seen([[[[0, 1, 2]], [[2, 3, 4]], [[4, 5, 0]]]]), 6) == 0.5
    assert measures.rank_overlap(seen([[[[0, 1]], [[2, 3]]]]), 4) == 0.0


@pytest.mark.parametrize(
    ("second", "shares_by_rank", "repeats"),
    [
        ([[[0, 1], [2, 3]], [[0, 4], [5, 5]]], [1.0, 1.0], True),
        ([[[0, 1], [3, 2]], [[0, 4], [5, 5]]], [0.5, 1.0], False),
        ([[[0, 1]], [[0, 4]]], [1.0, 1.0], True),  # compared as far as both go
        ([[[1, 0]], []], [0.0, 0.0], False),
    ],
)
def test_the_order_repeats_if_every_rank_reads_the_same_sample_at_each_position(second, shares_by_rank, repeats):
    run = run_of([TWO_RANKS[0], second])
    assert measures.same_order(measures.reads(run, 0), measures.reads(run, 1)).tolist() == shares_by_rank
    assert measures.order_repeats(run) is repeats


def test_an_epoch_that_a_resumed_run_begins_is_whole_and_one_that_it_goes_on_in_is_not():
    def attempt(first_step, epoch, steps):
        made = [step(first_step + n, epoch, digests={"train": [n]}) for n in range(steps)]
        return RankLog(head(0, 1), tuple(made), (Event("epoch_end", first_step + steps, 0, {"epoch": epoch}),))

    def complete(*tried):
        run = Run("variant", (tried[-1],), 1.0, attempts=len(tried), earlier=tuple((log,) for log in tried[:-1]))
        return measures.reads(run, tried[-1].steps[0].epoch).complete

    assert complete(attempt(0, 0, 8), attempt(8, 1, 8))
    assert not complete(attempt(0, 0, 8), attempt(5, 0, 3))
    assert not complete(attempt(8, 1, 8)), "of the attempt before nothing is left"


def test_a_leak_counts_validation_samples_that_any_rank_trained_on():
    leak = measures.validation_leak(run_of(TWO_RANKS, validation=[[5, 6], [6, 7]]))
    assert (leak.validation, leak.leaked, leak.key, leak.share) == (3, 1, "id", 1 / 3)
    assert measures.validation_leak(run_of(TWO_RANKS, validation=[[5, 6], [6, 7]], ids=False)).leaked == 1
    assert measures.validation_leak(run_of(TWO_RANKS, validation=[[8], [9]])).share == 0
    assert measures.validation_leak(run_of(TWO_RANKS)) is None


@pytest.mark.parametrize("size", [6, 7])
@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_the_expected_unique_share_is_the_mean_over_all_draws(size, batch, ranks):
    """Exact: a sample is missed by one rank with probability 1 - B/N, by all with its W-th power."""
    missed = (math.comb(size - 1, batch) / math.comb(size, batch)) ** ranks
    expected = size * (1 - missed) / (ranks * batch)
    assert measures.expected_unique_share(size, batch, ranks) == pytest.approx(expected, rel=1e-12)


def test_a_batch_larger_than_the_data_holds_all_of_them():
    assert measures.expected_unique_share(5, 8, 4) == 0.25


@pytest.mark.parametrize(
    ("intervals", "length"),
    [([], 0), ([(0, 5)], 5), ([(0, 5), (5, 7)], 7), ([(0, 5), (3, 7)], 7), ([(0, 9), (2, 3)], 9), ([(8, 9), (0, 5)], 6)],
)
def test_the_union_of_intervals_counts_no_time_twice(intervals, length):
    assert runs.union_ns(span(*interval) for interval in intervals) == length


def timed(*steps) -> RankLog:
    return RankLog(head(), tuple(step(i, spans=spans) for i, spans in enumerate(steps)))


def test_lane_shares_are_of_the_time_in_steps():
    log = timed([span(0, 60), span(50, 80, "comm")], [span(100, 150), span(120, 160)])
    assert runs.lane_shares(log) == {"compute": 0.6, "comm": 0.15}


def test_the_share_of_communication_is_the_mean_over_the_ranks_that_timed_it():
    slow, quick = timed([span(0, 30, "comm")]), timed([span(0, 10, "comm")])
    assert runs.comm_share(Run("variant", (slow, quick), 1.0)) == pytest.approx(0.2)
    assert runs.comm_share(Run("variant", (timed([span(0, 30)]),), 1.0)) is None


def test_the_loss_of_a_global_batch_is_weighted_by_samples():
    logs = [
        RankLog(head(rank, 2), tuple(step(i, scalars={"loss_local": loss, "batch_samples": n}) for i, (loss, n) in found))
        for rank, found in enumerate([enumerate([(1.0, 3), (2.0, 1)]), enumerate([(5.0, 1), ("nan", 1)])])
    ]
    curve = loss_curve(Run("variant", tuple(logs), 1.0))
    assert curve.loss_global[0] == 2.0 and math.isnan(curve.loss_global[1])
    assert curve.samples.tolist() == [4, 6]
    assert curve.time_s.tolist() == [100e-9, 200e-9]


def with_weights(values, hashes) -> Run:
    logs = tuple(RankLog(head(), (), digests={} if h is None else {"weights": h}) for h in hashes)
    return Run("variant", logs, 1.0, arrays={} if values is None else {"weights": np.array(values)})


def test_weights_are_compared_by_their_distance_and_by_their_bits():
    here, there = with_weights([3.0, 4.0], ["a", "a"]), with_weights([3.0, 4.5], ["a"])
    assert runs.weights_gap(there, here) == pytest.approx(0.1)
    assert runs.weights_equal(here, there) is True
    assert runs.weights_equal(with_weights([1.0], ["a", "b"]), there) is False


@pytest.mark.parametrize("other", [with_weights(None, [None]), with_weights([1.0], [None])])
def test_weights_that_are_missing_or_of_another_shape_are_not_compared(other):
    here = with_weights([3.0, 4.0], ["a"])
    assert (runs.weights_gap(here, other), runs.weights_equal(here, other)) == (None, None)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [8, 9, 97])
def test_the_measures_of_a_proper_sampler(size, ranks):
    reading = [[in_batches(share, 4) for share in shares(list(range(size)), ranks)]]
    found = measures.data_measures(record_of(run_of(reading, dataset_size=size)))
    padding = -size % ranks
    assert {name: quantity.value for name, quantity in found.items()} == {
        "samples_per_epoch": size + padding,
        "unique_samples": size,
        "coverage": 1.0,
        "copies_max": 2 if padding else 1,
        "padding": padding,
        "unique_share_of_global_batch": found["unique_share_of_global_batch"].value,
    } | ({"rank_overlap": 0.0} if ranks > 1 else {})


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        (Quantity(True), "yes"),
        (Quantity(False), "no"),
        (Quantity(1797, "samples"), "1,797 samples"),
        (Quantity(0.12345, "s"), "0.1235 s"),
        (Quantity(0.25, "of the data set"), "25.0% of the data set"),
        (Quantity("id"), "id"),
    ],
)
def test_a_quantity_reads_as_text(quantity, text):
    assert str(quantity) == text
