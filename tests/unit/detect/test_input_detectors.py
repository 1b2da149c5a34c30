"""Each detector of the input lab four ways, on records made by hand."""

import random

import pytest

from labkit.detect.catalogue import said
from labkit.detect.input import cross_process_lock, needless_workers, saturated_store, starved_input
from labkit.record.schema import Storage

from ..builders import record_of
from ..builders import run_of as reads_of
from ..input_runs import log_of, queue, record, run_of, steady


def noisy(low, high, compute_ms, *, steps=40, seed=0, **how):
    """Waits anywhere between two bounds, in stretches."""
    waits = [high if (k // 8) % 2 else low for k in range(steps)]
    random.Random(seed).shuffle(waits) if how.pop("mixed", False) else None
    return run_of(log_of(waits, compute_ms, **how))


# starved-input


@pytest.mark.parametrize(
    ("run", "beside", "status", "reason", "numbers"),
    [
        (steady(30, 10), {"dummy": steady(0.05, 10)}, "found", "ranks-wait-for-data", {"wait_ms": 30, "compute_ms": 10}),
        (steady(5, 20), {}, "found", "ranks-wait-for-data", {"wait_ms": 5, "compute_ms": 20}),
        (steady(2, 3), {}, "inconclusive", "wait-too-short-to-blame", {"wait_ms": 2, "share": 0.4}),
        (steady(2, 3), {"dummy": steady(0.05, 3)}, "found", "ranks-wait-for-data", {"wait_ms": 2}),
        (steady(1.5, 20), {}, "clear", "little-waiting", {"share": 1.5 / 21.5}),
        (steady(0.5, 0.5), {}, "clear", "batch-is-there", {"wait_ms": 0.5}),
        (noisy(0.5, 6, 20), {}, "inconclusive", "waiting-varies", {"limit": 0.1}),
        (steady(5, 20, steps=6), {}, "inconclusive", "too-few-steps-to-tell-waiting", {"steps": 4, "least": 8}),
        (steady(30, 10), {"dummy": steady(0.05, 39.9)}, "inconclusive", "no-faster-on-one-batch", {"share": 0.75}),
    ],
)
def test_waiting_is_judged_by_its_share_in_all_stretches_of_a_run(run, beside, status, reason, numbers):
    verdict = starved_input.detect(record(run, **beside))
    assert (verdict.status, verdict.reason) == (status, reason)
    assert {name: verdict.numbers[name] for name in numbers} == pytest.approx(numbers)
    assert verdict.cause and (verdict.fix != "") == (status != "clear")


def test_what_a_rank_waits_for_is_said_in_a_sentence_with_what_one_ready_batch_shows():
    verdict = starved_input.detect(record(steady(30, 10), dummy=steady(0.05, 10)))
    assert [note.key for note in verdict.notes] == ["longer-than-the-model", "faster-on-one-batch"]
    assert verdict.cause == (
        "a rank waits 30 ms for a batch and computes 10 ms on it: data take longer than the model; on one ready batch the "
        "run is 4.0 times as fast"
    )


def test_a_run_that_recorded_no_fetching_is_not_judged():
    assert starved_input.detect(record_of(reads_of([[[[1, 2]], [[3, 4]]]]))).status == "not_applicable"


def test_bursts_of_workers_are_waiting_too():
    """Two workers: every other batch is there, the one after it is not."""
    assert starved_input.detect(record(run_of(log_of([0.1, 20.0] * 20, 10.0)))).status == "found"


def test_one_slow_first_epoch_or_one_slow_step_is_no_finding():
    assert starved_input.detect(record(run_of(log_of([[50.0] * 10, [1.0] * 40], 20.0)))).status == "clear"
    once = [0.5] * 40
    once[17] = 60.0
    assert starved_input.detect(record(run_of(log_of(once, 20.0)))).status == "clear"


def test_the_rank_that_alone_waits_is_named():
    slow, quick = log_of([30.0] * 20, 10.0, rank=1, world_size=2), log_of([0.2] * 20, 39.8, rank=0, world_size=2)
    verdict = starved_input.detect(record(run_of(quick, slow)))
    assert (verdict.status, verdict.reason) == ("found", "one-rank-waits-for-data")
    assert verdict.numbers["rank"] == 1 and verdict.numbers["wait_ms"] == pytest.approx(30)


def test_the_waste_is_what_a_run_without_input_does_not_need():
    assert starved_input.detect(record(steady(30, 10), dummy=steady(0, 10))).waste == pytest.approx(0.75)
    assert starved_input.detect(record(steady(30, 10))).waste == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("run", "beside", "remedy"),
    [
        (steady(30, 10), {}, said("prepare-ahead")),
        (steady(30, 10, workers=2), {}, said("workers-cannot-keep-up", workers=2)),
        (steady(3, 1, workers=2), {"inline": steady(0.5, 1)}, said("take-workers-away")),
        (steady(30, 10, store_bytes=100), {}, said("read-the-store-once")),
        (queue(30, 10, 3), {"alone": steady(30, 10)}, said("look-for-a-lock")),
    ],
)
def test_the_fix_suits_the_evidence(run, beside, remedy):
    verdict = starved_input.detect(record(run, **beside))
    assert verdict.numbers["remedy"] == remedy and verdict.fix == str(remedy)


def test_the_evidence_says_where_a_store_is_simulated():
    storage = Storage(rate_bits_per_s=8e6, way="emulated")
    assert starved_input.detect(record(steady(30, 10), storage=storage)).evidence["data_time"].source == "simulated"


# cross-process-lock


def lock(run, alone=None):
    return cross_process_lock.detect(record(run, **({"alone": alone} if alone else {})))


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_fetches_that_come_one_after_the_other_are_found_whatever_the_number_of_ranks(ranks):
    verdict = lock(queue(20, 18, ranks), steady(20, 18))
    assert (verdict.status, verdict.reason) == ("found", "fetches-in-turn") and 0 < verdict.waste < 1
    assert verdict.evidence["serial_share_fitted"].value == pytest.approx(20 / 38)
    (note,) = verdict.notes
    assert note.key == "work-of-all-ranks" and note.numbers["ranks"] == ranks
    assert f"times as long as alone: {ranks} ranks do " in verdict.cause


def test_ranks_that_read_one_store_are_not_said_to_fetch_under_a_lock():
    verdict = cross_process_lock.detect(record(queue(20, 10, 4, store_bytes=100), alone=steady(20, 10, role="alone")))
    assert (verdict.status, verdict.reason) == ("inconclusive", "store-serves-in-turn")


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_ranks_that_fetch_beside_each_other_are_clear_and_so_are_those_that_share_by_equal_parts(ranks):
    beside = lock(steady(20, 18, ranks=ranks), steady(20, 18))
    assert (beside.status, beside.reason) == ("clear", "ranks-fetch-beside-each-other")
    shared = lock(steady(20 * ranks, 18, ranks=ranks), steady(20, 18))
    assert (shared.status, shared.reason) == ("clear", "fetches-share-equally")


def test_what_noise_could_have_made_is_inconclusive():
    shuffled = random.Random(1)
    logs = [log_of([20 + shuffled.uniform(0, 40) for _ in range(20)], 18.0, rank=r, world_size=3) for r in range(3)]
    assert lock(run_of(*logs), steady(20, 18)).status in ("inconclusive", "clear")
    between, few = lock(steady(27, 18, ranks=2), steady(20, 18)), lock(steady(20, 18, ranks=2, steps=5), steady(20, 18))
    assert (between.status, between.reason) == ("inconclusive", "in-turn-or-equally")
    assert (few.status, few.reason) == ("inconclusive", "too-few-fetches") and few.numbers["least"] == 8


def test_without_what_it_needs_the_lock_is_not_judged_and_says_which_run_to_add():
    for verdict, reason in (
        (lock(steady(20, 18)), "one-rank-waits-for-none"),
        (lock(queue(20, 18, 2)), "no-rank-alone"),
        (lock(steady(20, 18, ranks=2, workers=2), steady(20, 18)), "workers-fetch-ahead"),
    ):
        assert (verdict.status, verdict.reason) == ("not_applicable", reason)
    assert "compare=all" in lock(queue(20, 18, 2)).fix


# saturated-store


def store(run, alone=None):
    return saturated_store.detect(record(run, **({"alone": alone} if alone else {})))


@pytest.mark.parametrize("ranks", [2, 3, 4, 16])
def test_ranks_that_together_read_what_one_reads_alone_have_saturated_the_store(ranks):
    verdict = store(steady(10 * ranks, 5, ranks=ranks, store_bytes=1000), steady(10, 5, store_bytes=1000))
    assert (verdict.status, verdict.reason) == ("found", "store-at-its-limit")
    assert verdict.numbers == {"ranks": ranks, "times": pytest.approx(1)} and f"each gets 1/{ranks} of it" in verdict.cause
    assert verdict.evidence["rate_of_each_rank"].value == pytest.approx(1000 * 8 / 0.010 / ranks / 1e6)
    assert verdict.waste == pytest.approx(1 - 1 / ranks)


def test_a_store_whose_rate_grows_with_its_readers_is_clear_and_one_between_is_inconclusive():
    alone = steady(10, 5, store_bytes=1000)
    for run, status, reason in (
        (steady(10, 5, ranks=4, store_bytes=1000), "clear", "store-gives-more"),
        (steady(10, 5, ranks=2, store_bytes=1000), "clear", "store-gives-more"),
        (steady(27, 5, ranks=4, store_bytes=1000), "inconclusive", "store-near-its-limit"),
        (steady(10, 5, ranks=2, steps=4, store_bytes=1000), "inconclusive", "too-few-store-reads"),
    ):
        verdict = store(run, alone)
        assert (verdict.status, verdict.reason) == (status, reason)


def test_a_store_that_is_read_in_the_first_epoch_only_is_clear():
    import msgspec

    whole = steady(10, 5, ranks=2, epochs=2, store_bytes=1000)
    logs = [
        msgspec.structs.replace(
            log, steps=tuple(s if s.epoch == 0 else msgspec.structs.replace(s, counts={}) for s in log.steps)
        )
        for log in whole.ranks
    ]
    verdict = store(run_of(*logs), steady(10, 5, store_bytes=1000))
    assert (verdict.status, verdict.reason) == ("clear", "store-read-once")


def test_without_bytes_or_a_rank_alone_the_store_is_not_judged():
    for verdict, reason in (
        (store(steady(10, 5, ranks=2), steady(10, 5)), "no-store-bytes"),
        (store(steady(10, 5, ranks=2, store_bytes=1)), "no-reader-alone"),
        (store(steady(10, 5, ranks=2, store_bytes=1, workers=1), steady(10, 5, store_bytes=1)), "workers-read-ahead"),
    ):
        assert (verdict.status, verdict.reason) == ("not_applicable", reason)


# needless-workers


@pytest.mark.parametrize(
    ("own", "inline", "status", "reason", "numbers"),
    [
        (steady(3, 1, workers=2), steady(0.3, 1), "found", "faster-without-workers", {"times": 4 / 1.3}),
        (steady(0.5, 20, workers=2), steady(40, 20), "clear", "faster-with-workers", {"times": 60 / 20.5}),
        (steady(0.5, 20, workers=2), steady(0.3, 20), "clear", "as-fast-with-workers", {}),
        (noisy(1, 30, 5, workers=2), noisy(1, 12, 5), "inconclusive", "steps-overlap", {}),
        (noisy(1, 30, 5, workers=2), noisy(1, 30, 5), "inconclusive", "steps-overlap", {}),
        (steady(3, 1, workers=2, steps=4), steady(0.3, 1), "inconclusive", "too-few-steps-to-compare", {"least": 8}),
    ],
)
def test_workers_are_judged_beside_the_run_without_them(own, inline, status, reason, numbers):
    verdict = needless_workers.detect(record(own, inline=inline))
    assert (verdict.status, verdict.reason) == (status, reason) and verdict.numbers == pytest.approx(numbers)


def test_without_workers_or_without_the_run_beside_there_is_nothing_to_judge():
    none = needless_workers.detect(record(steady(3, 1), inline=steady(3, 1)))
    assert (none.status, none.reason) == ("not_applicable", "no-workers")
    alone = needless_workers.detect(record(steady(3, 1, workers=2)))
    assert (alone.status, alone.reason) == ("not_applicable", "no-run-without-workers") and "compare=all" in alone.fix


@pytest.mark.parametrize("detector", [starved_input, cross_process_lock, saturated_store, needless_workers])
def test_a_run_without_steps_breaks_no_detector(detector):
    empty = run_of(steady(1, 1).ranks[0].__class__(steady(1, 1).ranks[0].head, ()))
    assert detector.detect(record(empty)).status in ("not_applicable", "inconclusive")
