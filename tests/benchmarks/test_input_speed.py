"""What loaders, locks and stores do to the speed of a run, as ratios within one run, beside theory."""

from __future__ import annotations

import pytest

import labkit
from labkit.detect.input.measures import amdahl, expected_step, free_running, share_alone, speed_up

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]

LAB = labkit.lab("input-pipeline")
COSTS = {"prep": "wait", "prep_ms": 40.0, "compute_ms": 10.0, "batch": 16}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))


def value(record, name):
    return LAB.measures(record)[name].value


def test_workers_take_a_step_from_the_sum_to_the_larger_of_the_two(capsys):
    how = {"ranks": 1, "num_samples": 320, "compare": "nothing", **COSTS}
    steps = {0: 16e3 / value(LAB.run("broken", **how), "samples_per_s")}
    for workers in (1, 2, 4):
        steps[workers] = 16e3 / value(LAB.run("workers", workers=workers, **how), "samples_per_s")
    with capsys.disabled():
        print("\na step at D = 40 ms of waiting and C = 10 ms, one rank")
        for workers, step in steps.items():
            print(f"  {workers} workers {step:6.1f} ms, theory {expected_step(40, 10, workers):.0f}")
    assert steps[4] < steps[2] < steps[1] < steps[0] and steps[0] / steps[4] > 2


def test_a_lock_follows_amdahl_where_ranks_meet_and_its_own_limit_where_they_run_free(capsys):
    with capsys.disabled():
        print("\n4 ranks beside one alone, about half of the work under one lock")
        for meet, theory in ((True, amdahl), (False, free_running)):
            record = LAB.run("locked", ranks=4, num_samples=1024, meet=meet, epochs=1)
            gain, share = speed_up(record), share_alone(record)
            assert gain is not None and share is not None
            said = "meet each step" if meet else "run free"
            print(f"  {said:<15} {gain:.2f} x, theory {theory(share, 4):.2f} at f = {share:.2f}")
            assert gain < 2.5
        gain = speed_up(LAB.run("thread-locked", ranks=4, num_samples=1024, epochs=1))
        assert gain is not None
        print(f"  threading.Lock  {gain:.2f} x, nothing shared: 4")
    assert gain > 2.5


def test_a_store_gives_each_rank_its_share(capsys):
    with capsys.disabled():
        print("\na store behind 80 Mbit/s")
        for ranks in (2, 4):
            record = LAB.run("shared-store", ranks=ranks)
            together = LAB.judge(record)["saturated-store"].evidence["together_beside_alone"].value
            rate = value(record, "store_rate_per_rank")
            print(f"  {ranks} ranks: {rate:.1f} Mbit/s each while they fetch, together {together:.2f} x one alone")
            assert isinstance(together, float) and together < 1.5


def test_workers_that_have_nothing_to_prepare_are_slower(capsys):
    record = LAB.run("workers-in-memory", ranks=2)
    ratio = value(record, "without_workers_ratio")
    with capsys.disabled():
        print(f"\ndata in memory: without workers {ratio:.1f} x the rate with two")
    assert ratio > 1.2


def test_the_loader_alone_over_data_in_memory(capsys):
    """Without a step to hide behind: what handing over costs."""
    import time

    from torch.utils.data import DataLoader

    from labkit.ranks.context import worker_options
    from labkit.workloads.digits import Digits

    data = Digits()

    def seconds(workers):
        loader = DataLoader(data, 256, **worker_options(workers))
        started = time.perf_counter()
        for _ in range(3):
            list(loader)
        return time.perf_counter() - started

    seconds(0)
    inline, ahead = seconds(0), seconds(2)
    with capsys.disabled():
        print("\nthe loader alone, 3 epochs of 1,797 digits in batches of 256, workers started for each epoch")
        print(f"  {inline * 1e3:.0f} ms inline, {ahead * 1e3:.0f} with 2 workers: {ahead / inline:.1f} x")
    assert ahead > inline
