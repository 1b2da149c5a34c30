"""Theory and measures of an input pipeline, on numbers."""

import math

import numpy as np
import pytest

from labkit.detect.input import measures as m
from labkit.record.clocks import on_one_clock, one_clock

from ..input_runs import MS, log_of, queue, record, run_of, steady


def test_amdahl_for_ranks_that_meet_and_for_ranks_that_run_free():
    assert m.amdahl(0.53, 8) == pytest.approx(1.7, abs=0.01) and m.amdahl(0.048, 8) == pytest.approx(6.0, abs=0.02)
    assert m.free_running(0.59, 8) == pytest.approx(1.7, abs=0.01)
    assert m.amdahl(0, 5) == m.free_running(0, 5) == 5
    assert m.amdahl(1, 5) == m.free_running(1, 5) == 1


@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize("share", [0.55, 0.8, 1.0])
def test_the_fitted_share_is_the_one_that_made_the_speed_up(ranks, share):
    assert m.serial_share(m.amdahl(share, ranks), ranks, meet=True) == pytest.approx(share)
    assert m.serial_share(m.free_running(share, ranks), ranks, meet=False) == pytest.approx(share)


def test_the_share_of_1_7_times_on_8_ranks():
    assert round(m.serial_share(1.7, 8, meet=True), 2) == 0.53
    assert round(m.serial_share(1.7, 8, meet=False), 2) == 0.59


def test_a_step_waits_for_the_slower_of_workers_and_device():
    assert [m.expected_step(40, 10, w) for w in (0, 1, 2, 4, 8)] == [50, 40, 20, 10, 10]
    assert [m.expected_step(40, 10, w, cores=2) for w in (0, 1, 2, 4)] == [50, 40, 25, 25]


def test_steps_of_later_epochs_are_judged_without_the_first_of_each():
    log = log_of([[50.0] * 10, [9.0] + [1.0] * 9, [9.0] + [2.0] * 9], 10.0)
    assert [len(m.judged_steps(log)), m.judged_steps(log)[0].step] == [18, 11]
    assert m.waits(log).seconds == pytest.approx(1.5e-3)
    assert m.epoch_start_s(log) == pytest.approx(9e-3)


def test_with_one_epoch_the_first_two_steps_are_left_out_and_short_epochs_are_judged_whole():
    assert len(m.judged_steps(log_of([5.0] * 10, 1.0))) == 8
    assert len(m.judged_steps(log_of([5.0] * 3, 1.0, epochs=4))) == 9
    assert m.judged_steps(log_of([5.0] * 3, 1.0, epochs=2))[0].step == 2
    assert m.judged_steps(log_of([], 1.0) if False else run_of(steady(1, 1, steps=1).ranks[0]).ranks[0]) == ()


def test_too_few_steps_or_no_fetching_give_no_waits():
    assert m.waits(log_of([5.0] * 7, 1.0)) is None and m.rank_rate(log_of([5.0] * 7, 1.0)) is None
    assert m.waits(log_of([5.0] * 8, 1.0)) is not None


def test_a_step_is_split_into_data_collectives_and_the_rest():
    log = log_of([30.0] * 10, 10.0, comm_ms=4.0)
    found = m.waits(log)
    assert (found.share, found.seconds, found.compute) == pytest.approx((0.75, 0.030, 0.006))
    assert found.blocks == pytest.approx((0.75, 0.75))


def test_samples_a_second_of_all_ranks():
    assert m.samples_per_s(steady(30, 10, ranks=3)) == pytest.approx(3 * 8 / 0.040)
    assert m.times_faster(record(steady(30, 10), dummy=steady(0, 10)), "dummy") == pytest.approx(4.0)
    assert m.speed_up(record(queue(20, 18, 4), alone=steady(20, 18))) == pytest.approx(m.amdahl(20 / 38, 4))


def test_the_saw_tooth_is_the_share_of_each_window_that_is_spent_computing():
    times, shares = m.saw_tooth(log_of([75.0] * 4, 25.0, comm_ms=5.0))
    assert times[:2] == pytest.approx([0.025, 0.075]) and len(times) == 8
    assert shares == pytest.approx([0.0, 0.4] * 4)
    assert m.saw_tooth(log_of([75.0], 25.0), window_ms=200.0)[1] == pytest.approx([0.125])


def test_under_a_lock_fetches_are_served_one_at_a_time_and_their_ends_are_apart():
    found = m.sharing(record(queue(20, 18, 4), alone=steady(20, 18)))
    assert (found.alone_s, found.slowdown) == pytest.approx((0.020, 4.0))
    assert found.at_once == pytest.approx(1.0) and found.apart == 1.0


def test_what_is_shared_by_equal_parts_is_served_at_the_same_rate_and_ends_together():
    found = m.sharing(record(steady(80, 18, ranks=4), alone=steady(20, 18)))
    assert found.slowdown == pytest.approx(4.0) and found.at_once == pytest.approx(1.0) and found.apart < 0.3


def test_where_nothing_is_shared_all_ranks_fetch_at_once():
    found = m.sharing(record(steady(20, 18, ranks=4), alone=steady(20, 18)))
    assert (found.slowdown, found.at_once) == pytest.approx((1.0, 4.0))


def test_without_a_rank_alone_or_with_one_rank_there_is_nothing_to_compare():
    assert m.sharing(record(steady(20, 18, ranks=4))) is None
    assert m.sharing(record(steady(20, 18), alone=steady(20, 18))) is None


def test_ranks_on_machines_of_their_own_are_aligned_by_the_barrier():
    far = 3_600_000_000_000
    logs = [log_of([20.0] * 10, 5.0, rank=0, world_size=2, barrier_ns=0),
            log_of([20.0] * 10, 5.0, rank=1, world_size=2, barrier_ns=far, start_ms=far / MS)]  # fmt: skip
    run = on_one_clock(run_of(*logs))
    assert not one_clock(run) and m.most_inside(run, "fetch") is None
    one, other = m.fetches(run)
    assert [span.start_ns for span in one] == [span.start_ns for span in other]
    assert one_clock(steady(20, 5, ranks=3))


def test_most_inside_counts_those_that_are_in_at_one_moment():
    assert m.most_inside(steady(20, 5, ranks=3), "fetch") == 3
    assert m.most_inside(steady(20, 5, ranks=3), "nothing of this name") is None
    apart = run_of(log_of([5.0] * 3, 15.0, rank=0, world_size=2), log_of([5.0] * 3, 15.0, rank=1, world_size=2, start_ms=5))
    assert m.most_inside(apart, "fetch") == 1  # the one leaves at the moment in which the other comes


def test_counters_are_summed_over_ranks_by_epoch():
    run = steady(20, 5, ranks=3, steps=8, epochs=2, store_bytes=100, prepared=8)
    assert [m.counted(run, "store_bytes", later=later) for later in (False, True, None)] == [2400, 2400, 4800]
    assert m.counted(run, "prepared") == 3 * 16 * 8
    assert m.store_rates(run) == pytest.approx(np.full(3, 100 / 0.020))
    assert m.store_rates(steady(20, 5, store_bytes=100, workers=2)) is None and m.store_rates(steady(20, 5)) is None


def test_the_measures_of_a_record_have_units_and_a_source_where_a_store_is_simulated():
    from labkit.record.schema import Storage

    run = steady(30, 10, ranks=2, epochs=2, store_bytes=100, prepared=8)
    beside = {"alone": steady(15, 10), "dummy": steady(0.1, 10, ranks=2)}
    found = m.input_measures(record(run, storage=Storage(rate_bits_per_s=8e6, way="emulated"), **beside))
    assert found["data_time"].source == "simulated" and found["data_time"].value == pytest.approx(30)
    assert found["speed_up"].value == pytest.approx(2 * 25 / 40) and found["serial_share_fitted"].source == "fitted"
    assert found["store_bytes_later"].value == 2 * 20 * 100
    assert all(not isinstance(q.value, float) or math.isfinite(q.value) for q in found.values())
    assert m.input_measures(record(steady(30, 10)))["data_time"].source is None


def test_a_run_without_steps_has_no_measures_and_breaks_nothing():
    empty = run_of(m.RankLog(steady(1, 1).ranks[0].head, ()))
    assert m.input_measures(record(empty)) == {} and m.input_invariants(record(empty)) == []
    assert m.saw_tooth(empty.ranks[0])[0].size == 0
