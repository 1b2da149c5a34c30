"""The oracles of lab 07, on real ranks: what was prepared and read is counted, who held the lock is seen, weights compared.

No time is asserted; where a status is, what it rests on is ten times over its limit.
"""

import pytest
from asking import statuses, told_in_time, values
from torch.utils.data import DataLoader, DistributedSampler

import labkit
from labkit.detect.input.measures import counted, most_inside, waits
from labkit.detect.reads import measures
from labkit.errors import UnknownName, UsageError
from labkit.labs.input_pipeline import exercise, programs

pytestmark = pytest.mark.ranks

LAB = labkit.lab("input-pipeline")
QUICK = {"num_samples": 66, "batch": 8, "prep_ms": 4.0, "compute_ms": 1.0, "scan": 1, "compare": "nothing"}
ITEM = 32 * 32


def hashes(record):
    return {log.digests["weights"] for log in record.run.ranks}


WITH_INPUT = [variant.name for variant in LAB.spec.variants if variant.name not in ("dummy", "workers-in-memory")]


# What is read is the same, whichever way it comes


@pytest.mark.parametrize("variant", WITH_INPUT)
def test_every_variant_reads_each_sample_once_an_epoch_and_trains_to_the_same_bits(run, variant):
    record = run(variant)
    for epoch in measures.epochs(record.run):
        seen = measures.reads(record.run, epoch)
        assert (seen.total, seen.unique, seen.complete) == (66, 66, True)
    assert hashes(record) == hashes(run("broken")) and len(hashes(record)) == 1


@pytest.mark.parametrize(("ranks", "padding"), [(1, 0), (2, 0), (4, 2), (5, 4)])
def test_inline_every_sample_is_prepared_in_every_epoch(run, ranks, padding):
    found = values(run("broken", ranks=ranks))
    assert (found["prepared_first_epoch"], found["prepared_later"]) == (66 + padding, 66 + padding)


@pytest.mark.parametrize("variant", ["cached", "fixed"])
def test_with_a_cache_every_sample_is_prepared_once(run, variant):
    found = values(run(variant))
    assert (found["prepared_first_epoch"], found["prepared_later"]) == (66, 0)


def test_with_a_cache_padding_may_be_prepared_twice_and_nothing_in_later_epochs(run):
    found = values(run("cached", ranks=4, epochs=3))
    assert 66 <= found["prepared_first_epoch"] <= 68 and found["prepared_later"] == 0


def test_workers_prepare_what_is_asked_for_and_no_more(run):
    record = run("workers", workers=3, prefetch=4)
    assert counted(record.run, "prepared") == 2 * 66 and record.run.fact("workers") == 3


def test_the_dummy_run_reads_one_batch_again_and_again(run):
    record = run("dummy")
    assert all(len({tuple(step.ids["train"]) for step in log.steps}) == 1 for log in record.run.ranks)
    assert counted(record.run, "prepared") == 0  # the one batch was there before the first step


# The lock


@pytest.mark.parametrize("ranks", [2, 3])
def test_under_a_lock_that_crosses_processes_one_rank_at_a_time_is_inside(run, ranks):
    assert most_inside(run("locked", ranks=ranks).run) == 1


def test_under_a_threading_lock_ranks_are_inside_together(run):
    assert most_inside(run("thread-locked", ranks=3).run) > 1


# The store


@pytest.mark.parametrize("emulate", [False, True], ids=["link", "emulated"])
def test_all_ranks_read_all_scans_from_the_store_in_each_epoch(run, emulate):
    record = run("shared-store", ranks=3, emulate_store=emulate, num_samples=192)
    found = values(record)
    assert (found["store_bytes_first_epoch"], found["store_bytes_later"]) == (192 * ITEM, 192 * ITEM)
    assert record.storage.rate_bits_per_s == 80e6
    if emulate:
        assert record.storage.way == "emulated" and "simulated" in record.provenance.label()
        assert LAB.measures(record)["data_time"].source == "simulated"


def test_from_a_cached_store_each_scan_comes_once(run):
    found = values(run("shared-store-cached"))
    assert (found["store_bytes_first_epoch"], found["store_bytes_later"]) == (66 * ITEM, 0)


def test_a_cache_is_of_one_host_what_the_other_hosts_ranks_read_is_not_in_it(run):
    """Two hosts of a rank each: in the second epoch a rank fetches just what it did not read in the first."""
    record = run("shared-store-cached", hosts=2)
    if record.network.way == "emulated":
        pytest.skip(record.network.reason)
    first, second = (measures.reads(record.run, epoch).of_rank for epoch in (0, 1))
    fetched = sum(len(set(new.tolist()) - set(old.tolist())) for old, new in zip(first, second, strict=True))
    assert counted(record.run, "store_bytes", later=True) == fetched * ITEM > 0
    assert {log.head.host for log in record.run.ranks} == {"host-0", "host-1"}


# What stands beside a run


def test_a_record_holds_the_runs_that_its_verdicts_need(run):
    how = {"compare": "suited"}
    assert set(run("locked", ranks=3, **how).runs) == {"variant", "alone"}
    alone = run("locked", ranks=3, **how).runs["alone"]
    assert alone.world_size == 1 and len(alone.ranks[0].steps) == len(run("locked", ranks=3, **how).run.ranks[0].steps)
    assert set(run("broken", **how).runs) == {"variant", "dummy"}
    assert set(run("dummy", **how).runs) == {"variant"}
    inline = run("workers-in-memory", num_samples=66, batch=8, **how).runs["inline"]
    assert inline.fact("workers") == 0


def test_waits_that_are_ten_times_the_compute_are_found_and_one_ready_batch_is_not_waited_for(run):
    waits = {"prep": "wait", "prep_ms": 40.0, "compute_ms": 0.0, "num_samples": 160}
    starved = told_in_time(lambda seed: run("broken", seed=seed, **waits), "starved-input")
    assert starved.where.startswith("labkit/labs/input_pipeline/programs.py:")
    told_in_time(lambda seed: run("dummy", seed=seed, num_samples=160), "starved-input", "clear")


def test_a_threading_lock_is_never_called_a_lock_that_crosses_processes(run):
    record = run("thread-locked", ranks=2, compare="suited", prep_ms=10.0, num_samples=160)
    assert statuses(record)["cross-process-lock"] != "found"


def test_the_invariants_hold_no_time(run):
    text = LAB.invariants(run("locked"), run("thread-locked"), run("cached"))
    assert "one_at_a_time_across_ranks = True" in text and "one_at_a_time_across_ranks = False" in text
    assert "prepared_later = 0" in text and "ms" not in text


def test_a_record_comes_back_from_its_folder_with_its_store(run):
    record = run("shared-store", ranks=3, emulate_store=True, num_samples=192)
    assert labkit.read_record(record.folder).storage == record.storage


# Wrong use


def test_wrong_use_is_refused_before_anything_starts():
    with pytest.raises(UsageError, match="nothing to cache or to lock"):
        LAB.run("cached", source="memory")
    with pytest.raises(UnknownName, match="Did you mean 'store'"):
        LAB.run("broken", source="stor")
    with pytest.raises(UsageError, match="store_mbit must be from 1"):
        LAB.run("shared-store", store_mbit=0)


def test_under_torchrun_a_store_is_refused_on_every_rank(monkeypatch):
    for name, word in {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}.items():
        monkeypatch.setenv(name, word)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "a-test")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "1")
    with pytest.raises(UsageError, match="run it without torchrun"):
        LAB.run("shared-store")


# The exercise


def unfinished(data, rank, world_size, batch, seed):
    return DataLoader(data, batch, sampler=DistributedSampler(data, world_size, rank, seed=seed), drop_last=True)


def once(data, rank, world_size, batch, seed):
    yield from programs.broken(data, rank, world_size, batch, seed)


def mixed_up(data, rank, world_size, batch, seed):
    batches = list(programs.broken(data, rank, world_size, batch, seed))
    return [(batches[0][0], labels, ids) for _, labels, ids in batches]


def the_answer(data, rank, world_size, batch, seed):
    return programs.broken(data.digits, rank, world_size, batch, seed)


@pytest.mark.parametrize(
    ("loader", "words"),
    [
        (unfinished, "samples are never read"),
        (once, "epoch 1 gives no batches: the function is called once"),
        (mixed_up, "are not those of their ids"),
        (lambda *given: None, "returned None"),
        (the_answer, "never prepared"),
    ],
)
def test_a_loader_that_does_not_read_the_data_is_told_so(loader, words):
    assert words in str(LAB.check(loader, seed=1))  # elsewhere a rank may have no whole batch, which is said instead


@pytest.mark.timeout(300)  # on a busy machine the check measures again, with batches that cost more
def test_a_loader_that_prepares_inline_is_told_so_and_one_with_a_cache_passes():
    assert "every sample is prepared again in each epoch" in str(LAB.check(programs.broken))
    assert LAB.check(programs.cached).passed


def test_the_exercise_judges_the_rank_that_waits_longest(run):
    shares = [waits(log).share for log in run("broken", num_samples=160).run.ranks]
    assert len(shares) == 2 and exercise.LIMIT < exercise.FAR < max(shares)
