"""The oracles of lab 04, on real ranks: who computed on what is counted, what was trained is trained again by hand."""

import math
import os
import sys
import threading
import time

import numpy as np
import pytest
import torch
from asking import statuses, value

import labkit
from labkit.detect import runs
from labkit.detect.staleness.measures import Pushes, pushes
from labkit.errors import RankFailed, RankTimeout, RunStopped, UnknownName, UsageError
from labkit.labs.stale_gradients.curvature import sharpness
from labkit.labs.stale_gradients.programs import batches
from labkit.ranks.launch import Control
from labkit.theory.delay import stability_limit, staleness_sum
from labkit.workloads.digits import Digits
from labkit.workloads.models import build

pytestmark = pytest.mark.ranks

LAB = labkit.lab("stale-gradients")
QUICK = {"steps": 12, "step_ms": 1.0, "repeats": 0, "compare": "no"}
SLOW = {"straggler": 4.0, "steps": 25, "step_ms": 20.0}  # so slow that a busy machine makes no difference
EXACT = {"dtype": "float64", "lr": 0.1, "momentum": 0.5}


def gradients(record) -> Pushes:
    found = pushes(record.run)
    assert found is not None
    return found


# Staleness: W - 1, for workers of any speeds


@pytest.mark.parametrize(
    ("ranks", "how"),
    [(1, {}), (2, {}), (3, {"straggler": 4.0}), (4, SLOW), (5, {"step_ms": 0.0})],
    ids=str,
)
def test_staleness_adds_up_to_what_is_derived_whatever_the_speeds(run, ranks, how):
    of_run = gradients(run("broken", ranks=ranks, **how))
    total = ranks * (QUICK | how)["steps"]
    assert len(of_run) == total and of_run.pushed.tolist() == list(range(total))
    assert int(of_run.staleness.sum()) == staleness_sum(ranks, total)
    assert sorted(of_run.rank[-ranks:]) == list(range(ranks))  # the last pushes are one of each


def test_a_straggler_has_far_older_gradients_and_fewer_of_them(run):
    record = run("broken", ranks=4, **SLOW)
    assert value(record, "staleness_of_slowest") > 1.5 * value(record, "staleness_of_others")
    assert value(record, "gradients_of_slowest") < value(record, "gradients_of_fastest") / 1.5
    assert np.bincount(gradients(record).rank).argmin() == 3  # the last rank is the slow one


def test_served_in_turn_every_gradient_is_exactly_w_minus_1_versions_old(run):
    of_run = gradients(run("async-in-turn", ranks=3, **EXACT))
    assert of_run.rank.tolist() == [0, 1, 2] * 12
    assert of_run.staleness.tolist() == [0, 1, *[2] * 34]


def test_nobody_begins_a_gradient_further_ahead_of_the_slowest_than_the_bound(run):
    of_run = gradients(run("async-bounded", ranks=3, bound=2, straggler=6.0, lr=0.05, steps=15, step_ms=8.0))
    counted = [np.bincount(of_run.rank[:version], minlength=3) for version in range(len(of_run) + 1)]
    leads = [
        counted[pulled][rank] - counted[pulled].min()
        for rank, pulled in zip(of_run.rank, of_run.pulled, strict=True)
        if pulled <= len(of_run) - 3 * (2 + 1)  # at the end, those that are done no longer count
    ]
    assert max(leads) == 2
    unbounded = gradients(run("async-bounded", ranks=3, bound=0, straggler=6.0, lr=0.05, steps=15, step_ms=8.0))
    assert unbounded.of_rank(2).mean() > 1.3 * of_run.of_rank(2).mean()


# What was trained, trained again by hand


def by_hand(order, ranks, *, seed=0, momentum=0.5, lr=0.1):
    """The parameter server in one plain loop: the same gradients on the same held weights, in a given order."""
    data, model = Digits(dtype=torch.float64), build("mlp", seed=seed, dtype=torch.float64)
    held = [[p.detach().clone() for p in model.parameters()] for _ in range(ranks)]
    streams = [batches(data, rank, ranks, 32, seed) for rank in range(ranks)]
    velocity = [torch.zeros_like(p) for p in model.parameters()]
    worker = build("mlp", seed=seed, dtype=torch.float64)
    for rank in order:
        for parameter, weight in zip(worker.parameters(), held[rank], strict=True):
            parameter.data.copy_(weight)
        ids = next(streams[rank])
        loss = torch.nn.functional.cross_entropy(worker(data.images[ids]), data.labels[ids])
        for p, v, g in zip(model.parameters(), velocity, torch.autograd.grad(loss, list(worker.parameters())), strict=True):
            v.mul_(momentum).add_(g)
            p.data.sub_(lr * v)
        held[rank] = [p.detach().clone() for p in model.parameters()]
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()]).numpy()


@pytest.mark.parametrize("variant", ["broken", "async-in-turn"])
def test_the_order_of_arrival_decides_everything_played_back_it_gives_the_same_weights(run, variant):
    record = run(variant, ranks=3, **EXACT)
    order = gradients(record).rank.tolist()
    trained, expected = record.run.arrays["weights"], by_hand(order, 3)
    assert np.linalg.norm(trained - expected) / np.linalg.norm(expected) < 1e-13
    another = by_hand(order[::-1], 3)
    assert np.linalg.norm(trained - another) / np.linalg.norm(another) > 1e-6  # the comparison can fail


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_synchronous_ranks_equal_one_process_with_the_large_batch(run, ranks):
    record = run("fixed", ranks=ranks, num_samples=97, repeats=int(ranks == 4), compare="yes", **EXACT)
    assert value(record, "weights_gap_to_single") <= 1e-12
    assert len({log.digests["weights"] for log in record.run.ranks}) == 1
    assert not gradients(record).staleness.any()
    if ranks == 4:  # and to the bit what they were before
        assert value(record, "weights_repeat") and statuses(record)["repeatable"] == "clear"


def test_one_rank_is_the_same_program_synchronous_or_not(run):
    alone, waits = run("broken", ranks=1), run("fixed", ranks=1, compare="yes")
    assert runs.weights_equal(alone.run, waits.run) and value(waits, "weights_equal_single")


def test_another_seed_gives_other_weights(run):
    one, other = run("broken", ranks=1), run("broken", ranks=1, seed=1)
    assert not runs.weights_equal(one.run, other.run)


# The learning rate


def test_sharpness_is_the_largest_eigenvalue_of_the_hessian():
    data, model = Digits(60), torch.nn.Linear(64, 10)
    with torch.no_grad():
        model.weight.copy_(torch.randn(10, 64, generator=torch.Generator().manual_seed(1)))
        model.bias.zero_()

    def loss(weight):
        logits = data.images @ weight.view(10, 64).T + model.bias
        return torch.nn.functional.cross_entropy(logits, data.labels)

    model.bias.requires_grad_(False)
    hessian = torch.autograd.functional.hessian(loss, model.weight.detach().reshape(-1))
    largest = float(torch.linalg.eigvalsh(hessian)[-1])  # pyright: ignore[reportArgumentType]
    model.bias.requires_grad_(True)
    found = sharpness(model, data)
    assert found >= 0.95 * largest  # the bias adds directions, which can only raise it


def test_a_learning_rate_of_0_is_taken_from_theory_for_the_delay_of_these_workers(run):
    async_, sync = run("async-theory-lr", ranks=3, steps=3), run("fixed", ranks=3, steps=3, lr=0.0, momentum=0.0)
    curvature = async_.run.fact("sharpness")
    assert 1 < curvature < 50 and curvature == sync.run.fact("sharpness")
    assert async_.run.fact("lr") == pytest.approx(0.8 * stability_limit(2) / curvature)
    assert sync.run.fact("lr") == pytest.approx(0.8 * 2 / curvature)


# What the detectors say of each variant


TABLE = {
    #                     stale-gradients  repeatable
    "broken":            ("found",         "found"),
    "async-no-momentum": ("clear",         "not_applicable"),
    "async-theory-lr":   ("clear",         "not_applicable"),
    "async-straggler":   ("clear",         "not_applicable"),
    "async-bounded":     ("clear",         "not_applicable"),
    "async-in-turn":     ("clear",         "clear"),
    "sync-straggler":    ("clear",         "not_applicable"),
    "fixed":             ("clear",         "clear"),
}  # fmt: skip


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Each variant at W = 4, as a learner runs it, but shorter; made again only where that is judged."""
    records = {}

    def of(variant):
        if variant not in records:
            how = {"ranks": 4, "steps": 40, "step_ms": 2.0, "device": "cpu", "repeats": 0}
            if TABLE[variant][1] != "not_applicable":
                how |= {"repeats": 1}
            if "straggler" in variant or variant == "async-bounded":
                how |= {"step_ms": 8.0}
            if variant in ("async-straggler", "async-bounded", "async-in-turn"):
                how |= {"lr": 0.07}  # as theory has it, without looking for the curvature again
            records[variant] = LAB.run(variant, record_dir=tmp_path_factory.mktemp("record"), **how)
        return records[variant]

    return of


@pytest.mark.parametrize("variant", TABLE)
def test_each_variant_has_its_own_verdicts(judged, variant):
    found = statuses(judged(variant))
    assert (found["stale-gradients"], found["repeatable"]) == TABLE[variant]
    # whether ranks wait is a matter of time, which noise may hide: but it is not turned into its opposite
    assert found["straggler"] != ("clear" if variant in ("async-bounded", "sync-straggler") else "found")


def test_the_table_is_complete():
    assert set(TABLE) == {variant.name for variant in LAB.spec.variants}


def test_the_broken_variant_is_far_beyond_its_limit_and_its_synchronous_twin_is_not(judged):
    evidence = LAB.judge(judged("broken"))["stale-gradients"].evidence
    rate = evidence["lr_times_curvature"].value
    assert 5 * evidence["stable_below"].value < rate < evidence["stable_below_without_delay"].value
    verdict = LAB.judge(judged("broken"))["stale-gradients"]
    assert verdict.waste > 0.5 and verdict.where.startswith("labkit/labs/stale_gradients/programs.py:")


def test_without_momentum_it_trains_above_the_limit_of_the_theory(judged):
    record = judged("async-no-momentum")
    rates = value(judged("broken"), "sharpness_max") * value(record, "learning_rate")
    assert rates > stability_limit(3)
    assert value(record, "loss_final") < 0.8 * math.log(10)  # of ten classes, guessed


def test_every_variant_takes_the_same_samples(judged):
    assert {value(judged(variant), "pushes") for variant in TABLE} == {160}


def test_a_record_comes_back_from_its_folder_with_the_same_verdicts(judged):
    back = labkit.read_record(judged("broken").folder)
    assert statuses(back) == statuses(judged("broken")) and "sync" in back.runs and "repeat" in back.runs


# It ends cleanly, whatever happens


def test_a_worker_that_dies_is_named_and_nobody_waits_for_it(tmp_path):
    fault = labkit.Fault(kind="kill", rank=2, step=3)
    with pytest.raises(RankFailed, match="rank 2 killed"):
        LAB.run("broken", ranks=3, faults=[fault], record_dir=tmp_path / "a", deadline_s=60, **QUICK)


def test_a_worker_that_dies_while_others_wait_for_its_turn_is_named(tmp_path):
    fault = labkit.Fault(kind="exception", rank=1, step=3)
    with pytest.raises(RankFailed, match="rank 1 failed: InjectedFault"):
        LAB.run("async-in-turn", ranks=3, faults=[fault], record_dir=tmp_path / "a", deadline_s=60, **QUICK | {"lr": 0.1})


def test_at_the_deadline_each_rank_says_where_it_waits(tmp_path):
    fault = labkit.Fault(kind="delay", rank=1, step=3, seconds=600)
    with pytest.raises(RankTimeout) as caught:
        LAB.run("async-in-turn", ranks=3, faults=[fault], record_dir=tmp_path / "a", deadline_s=8, **QUICK | {"lr": 0.1})
    assert "rank 2 waiting: in recv" in str(caught.value)


def test_stop_ends_it(tmp_path):
    control = Control()
    threading.Timer(1.5, control.stop).start()
    started = time.monotonic()
    with pytest.raises(RunStopped):
        LAB.run("broken", ranks=3, control=control, record_dir=tmp_path / "a", **QUICK | {"steps": 100_000})
    assert time.monotonic() - started < 60


# Wrong use


def test_wrong_use_is_refused_before_anything_starts():
    with pytest.raises(UnknownName, match="Did you mean 'async-bounded'"):
        LAB.run("async-bound")
    with pytest.raises(UsageError, match="lr must be from 0.0 to 100.0; given -1"):
        LAB.run("broken", lr=-1)
    with pytest.raises(UnknownName, match="in-turn"):
        LAB.run("broken", serve="turns")
    with pytest.raises(UsageError, match="straggler must be from 1.0"):
        LAB.run("broken", straggler=0.5)


@pytest.mark.parametrize("batch", [1, 97, 300])
def test_a_batch_larger_than_a_share_wraps_around_and_every_batch_is_full(batch):
    stream = batches(Digits(97), 1, 4, batch, seed=0)
    assert [len(next(stream)) for _ in range(3)] == [batch] * 3


# The exercise


def by_theory(workers, sharpness):
    delay = workers - 1
    return 0.8 * 2 * math.sin(math.pi / (2 * (2 * delay + 1))) / sharpness


def test_the_checker_accepts_the_learning_rate_of_theory():
    result = LAB.check(by_theory)
    assert result.findings == [] and "Solved" in repr(result)


def synchronous(workers, sharpness):
    return 2 / sharpness * 0.8


def without_curvature(workers, sharpness):
    return 0.8 * 2 * math.sin(math.pi / (2 * (2 * workers - 1)))


def constant(workers, sharpness):
    return 0.2


def timid(workers, sharpness):
    return by_theory(workers, sharpness) / 10


def on_the_limit(workers, sharpness):
    return by_theory(workers, sharpness) / 0.8


def negative(workers, sharpness):
    return -0.1


def nothing(workers, sharpness):
    return None


def raises(workers, sharpness):
    raise KeyError("a mistake")


def exits(workers, sharpness):
    sys.exit(0)


def ends(workers, sharpness):
    os._exit(0)


def huge(workers, sharpness):
    return 10**400


@pytest.mark.parametrize(
    ("wrong", "finding"),
    [
        (synchronous, "too high; it does not depend on the workers"),
        (without_curvature, "; theory bounds lr times the curvature, so divide by it"),
        (constant, "; it depends on neither"),
        (timid, "8% of the limit of"),
        (on_the_limit, "too high"),
        (negative, "a learning rate is a number above 0"),
        (nothing, "returned None; return one number"),
        (raises, "at tests/labs/test_stale_gradients.py:"),
        (exits, "it called sys.exit(0), and should return a value"),
        (ends, "its process ended without returning and without an error"),
        (huge, "return one number"),
    ],
    ids=lambda wrong: getattr(wrong, "__name__", ""),
)
def test_the_checker_says_what_is_too_high_or_too_low_and_why(wrong, finding):
    result = LAB.check(wrong)
    assert not result and finding in result.findings[0], result.findings
