"""The oracles of lab 05, on real ranks: how often and in what buckets gradients are reduced, and what was on the wire."""

import sys

import numpy as np
import pytest
from asking import status, value

import labkit
from labkit.detect.overlap import measures, summary
from labkit.errors import UnknownName, UsageError
from labkit.labs.overlap import exercise
from labkit.record.quantity import Quantity

pytestmark = pytest.mark.ranks

LAB = labkit.lab("overlap")
QUICK = {"layers": 10, "width": 64, "batch": 64, "bucket_mb": 0.0158, "steps": 5}
"""Eleven layers of 16,640 bytes of gradients each, a bucket of 16,567 for each; the small last layer joins the first."""

GRADIENT_BYTES = 4 * (10 * (64 * 64 + 64) + (64 * 64 + 64) + (64 * 10 + 10))
TENSORS = 24
COUNTS_ONLY = {"parts_alone": False, "hosts": 1}
K = 4


@pytest.fixture(scope="module")
def counted(run):
    """A run of which only the counts matter: no link, no parts alone."""
    return lambda variant, ranks=2, **how: run(variant, ranks=ranks, **COUNTS_ONLY, **how)


# How often gradients are reduced


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(
    ("variant", "reductions", "equal"),
    [("accumulate", K, True), ("no-sync", 1, True), ("no-sync-backward-only", K, True), ("no-sync-around-all", 0, False)],
)
def test_k_micro_batches_reduce_k_times_once_k_times_and_never(counted, variant, reductions, equal, ranks):
    record = counted(variant, ranks=ranks)
    assert (value(record, "micro_batches"), value(record, "reductions")) == (K, reductions)
    assert value(record, "weights_equal_on_ranks") is equal
    for of_ranks in measures.training_steps(record.run):
        assert {step.counts["reductions"] for step in of_ranks} == {reductions}
        assert {step.counts["all_reduce_bytes"] for step in of_ranks} == {reductions * GRADIENT_BYTES}


def test_ranks_that_train_apart_part_in_the_first_step(counted):
    losses = [[s.scalar("loss_local") for s in log.steps] for log in counted("no-sync-around-all").run.ranks]
    assert losses[0] != losses[1]


@pytest.mark.parametrize("micro", [1, 2, 8])
def test_other_numbers_of_micro_batches_are_counted_too(counted, micro):
    assert value(counted("accumulate", micro_batches=micro), "reductions") == micro
    assert value(counted("no-sync", micro_batches=micro), "reductions") == 1


# In what buckets


@pytest.mark.parametrize(
    ("variant", "collectives"), [("broken", 1), ("fixed", 11), ("per-parameter", TENSORS), ("ddp-default", 1)]
)
def test_each_variant_makes_its_number_of_collectives_from_the_second_step_on(counted, variant, collectives):
    record = counted(variant)
    first, *others = (of_ranks[0].counts["all_reduce"] for of_ranks in measures.training_steps(record.run))
    assert first == 1 and set(others) == {collectives}
    made = measures.buckets(record.run)
    assert made.num_bytes.sum() == GRADIENT_BYTES and made.params.sum() == TENSORS
    assert value(record, "collectives_per_reduction") == collectives


def test_buckets_of_the_model_are_those_of_torch(run):
    from labkit.theory.overlap_model import MIB, bucket_ends

    record = run("bucket-sweep", ranks=2, hosts=1, sweep_mb="0.001,0.02,0.05,0.1,1", steps=2)
    gradients = summary.gradients_of(record.run)
    assert gradients.total_bytes == GRADIENT_BYTES
    for tried in summary.sweep_of(record):
        assert len(bucket_ends(gradients.num_bytes, tried.cap_mib * MIB)) == tried.buckets


def test_serial_reduces_each_gradient_by_hand_to_what_ddp_would_make_of_it(counted):
    record = counted("serial")
    assert value(record, "collectives_by_hand") == TENSORS and value(record, "reductions") == 0
    assert value(record, "weights_equal_on_ranks") is True
    by_hand, by_ddp = record.run.arrays["weights"], counted("fixed").run.arrays["weights"]
    assert np.linalg.norm(by_hand - by_ddp) / np.linalg.norm(by_ddp) < 1e-6


def test_flat_sends_one_tensor_by_hand_and_gives_what_a_reduction_a_gradient_gives(counted):
    record = counted("flat")
    assert value(record, "collectives_by_hand") == 1 and value(record, "dispatched_bytes") == GRADIENT_BYTES
    flat, one_by_one = (counted(variant).run.ranks[0].digests["weights"] for variant in ("flat", "serial"))
    assert flat == one_by_one, "two numbers have one order in which they can be added"


@pytest.mark.parametrize(
    ("variant", "times"), [("fixed", 1), ("serial", 1), ("fp16-hook", 1 / 2), ("accumulate", K), ("no-sync-around-all", 0)]
)
def test_what_is_given_to_collectives_is_the_gradients_and_half_of_them_in_fp16(counted, variant, times):
    assert LAB.measures(counted(variant)).get("dispatched_bytes", Quantity(0)).value == GRADIENT_BYTES * times


def test_gradients_that_are_sent_in_fp16_are_those_of_fp32_rounded(counted):
    record = counted("fp16-hook")
    assert value(record, "weights_equal_on_ranks") is True
    rounded, exact = record.run.arrays["weights"], counted("fixed").run.arrays["weights"]
    gap = np.linalg.norm(rounded - exact) / np.linalg.norm(exact)
    assert 0 < gap < 2**-11, "a number is rounded by 2^-11 at the most, and a step is a small part of a weight"


def test_accumulation_learns_what_one_large_batch_does(counted):
    """K micro-batches, averaged: up to rounding the step of the whole batch."""
    whole, parts = (counted(v, micro_batches=m).run.arrays["weights"] for v, m in (("fixed", 1), ("no-sync", K)))
    assert np.linalg.norm(whole - parts) / np.linalg.norm(whole) < 1e-5
    apart = counted("no-sync-around-all", micro_batches=K).run.arrays["weights"]
    assert np.linalg.norm(whole - apart) / np.linalg.norm(whole) > 1e-5


# What was on the wire


@pytest.mark.parametrize(("ranks", "hosts"), [(2, 2), (3, 3)])
def test_bytes_on_the_wire_are_those_of_a_ring(run, ranks, hosts):
    """Each rank sends 2(W-1)/W of the gradients, within 1 % at the interface of its host."""
    how = {"layers": 12, "width": 256, "batch": 16, "bucket_mb": 0.25}
    record = run("fixed", ranks=ranks, hosts=hosts, link="1gbit", parts_alone=False, **how)
    if record.network.way == "emulated":
        pytest.skip("no network namespaces here: an emulated link has no interface")
    expected = 2 * (ranks - 1) / ranks
    assert value(record, "wire_over_gradients") == pytest.approx(expected, rel=0.01)


# Time: nothing is asserted of how long, only of what is inside what


def test_collectives_begin_when_their_bucket_is_ready_and_end_before_the_backward_pass_does(run):
    record = run("fixed", ranks=2, hosts=2, link="100mbit")
    for of_ranks in measures.measured_steps(record.run):
        for step in of_ranks:
            (end,) = step.series["backward_end_ns"]
            (start,) = step.series["backward_start_ns"]
            assert all(start < ready for ready in step.series["bucket_ready_ns"])
            pairs = zip(step.series["bucket_ready_ns"], step.series["bucket_end_ns"], strict=True)
            assert all(ready <= arrived <= end for ready, arrived in pairs)
    for split in (measures.split(step) for of_ranks in measures.measured_steps(record.run) for step in of_ranks):
        assert 0 <= split.exposed_ns <= split.comm_ns <= split.sum_ns
        assert split.compute_ns + split.exposed_ns + split.other_ns == split.step_ns and split.other_ns >= 0


def test_a_record_holds_its_parts_alone_and_a_link_of_its_own(run):
    record = run("fixed", ranks=2, hosts=2, link="100mbit")
    assert len(measures.alone_steps(record.run)) == len(measures.measured_steps(record.run)) == 3
    assert not any(step.counts.get("reductions") for of in measures.alone_steps(record.run) for step in of)
    assert summary.link_of(record).world_size == 2
    found = LAB.measures(record)
    assert {"hidden", "hidden_by_union", "hidden_by_sum_which_lies", "compute_alone", "communication_alone"} <= set(found)
    assert found["collectives_sum"].value >= found["collectives_union"].value


def test_an_emulated_link_delays_the_same_collectives_and_says_simulated(run):
    record = run("broken", ranks=2, hosts=2, link="100mbit", emulate_link=True, steps=3)
    assert record.network.source == "simulated" and value(record, "reductions") == 1
    assert "wire_over_gradients" not in LAB.measures(record)
    assert value(record, "exposed") > 5, "273 kB take 22 ms at 100 Mbit/s, and nothing hides them"


# What the detectors say


TABLE = {
    #                         missing-no-sync   misplaced-no-sync  per-parameter     needless-find-unused
    "broken":                ("not_applicable", "not_applicable",  "clear",          "clear"),
    "serial":                ("not_applicable", "clear",           "found",          "clear"),
    "flat":                  ("not_applicable", "clear",           "clear",          "clear"),
    "ddp-default":           ("not_applicable", "not_applicable",  "clear",          "clear"),
    "per-parameter":         ("not_applicable", "not_applicable",  "found",          "clear"),
    "accumulate":            ("found",          "not_applicable",  "clear",          "clear"),
    "no-sync":               ("clear",          "clear",           "clear",          "clear"),
    "no-sync-backward-only": ("clear",          "found",           "clear",          "clear"),
    "no-sync-around-all":    ("clear",          "found",           "not_applicable", "clear"),
    "find-unused":           ("not_applicable", "not_applicable",  "clear",          "found"),
    "fp16-hook":             ("not_applicable", "not_applicable",  "clear",          "clear"),
    "fixed":                 ("not_applicable", "not_applicable",  "clear",          "clear"),
}  # fmt: skip
EXACT = ("missing-no-sync", "misplaced-no-sync", "per-parameter-reduction", "needless-find-unused")


@pytest.mark.parametrize("variant", TABLE)
def test_each_variant_has_its_own_verdicts(counted, variant):
    assert tuple(status(counted(variant), name) for name in EXACT) == TABLE[variant]


def test_the_table_is_complete():
    assert {*TABLE, "bucket-sweep"} == {variant.name for variant in LAB.spec.variants}


def test_all_in_one_bucket_on_a_slow_link_is_found_with_its_place(run):
    verdict = LAB.judge(run("broken", ranks=2, hosts=2, link="50mbit", batch=4096))["exposed-communication"]
    assert verdict.status == "found" and verdict.waste > 0.1
    assert verdict.where.startswith("labkit/labs/overlap/programs.py:")


@pytest.mark.parametrize("variant", ["broken", "fixed", "no-sync", "bucket-sweep"])
def test_on_one_rank_there_is_nothing_to_find(run, variant):
    record = run(variant, ranks=1, steps=3)
    assert set(v.status for v in LAB.judge(record)) <= {"not_applicable", "clear"}
    assert "step_time" in LAB.measures(record) or variant == "bucket-sweep"


def test_a_fault_that_delays_a_rank_is_seen_to_have_fired(run):
    fault = labkit.Fault(kind="delay", rank=1, step=3, seconds=0.001)
    record = run("fixed", ranks=2, faults=(fault,), **COUNTS_ONLY)
    events = [[e.step for e in log.events if e.name == "fault"] for log in record.run.ranks]
    assert events == [[], [3]]


# Wrong use, and the exercise


def test_wrong_use_is_refused_before_anything_starts():
    with pytest.raises(UnknownName, match="Did you mean 'no-sync'"):
        LAB.run("no-sinc")
    with pytest.raises(UsageError, match="batch 4 cannot be split into 8"):
        LAB.run("no-sync", batch=4, micro_batches=8)
    with pytest.raises(UsageError, match="sweep_mb must be sizes in MiB.*given 'one,two'"):
        LAB.run("bucket-sweep", sweep_mb="one,two")
    with pytest.raises(UsageError, match="bucket_mb=2.0"):
        LAB.run(lambda gradients, link: 1.0)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda gradients, link: 1e5, "large buckets leave when the backward pass is nearly over"),
        (lambda gradients, link: 1e-6, "many small buckets each pay the link's latency"),
        (lambda gradients, link: "1 MiB", "returned '1 MiB'; return a number of MiB above 0"),
        (lambda gradients, link: 1 / 0, "did not finish"),
        (lambda gradients, link: 10**400, "return a number of MiB above 0"),
        (lambda gradients, link: sys.exit(0), "it called sys.exit(0), and should return a value"),
    ],
)
def test_an_answer_that_is_wrong_is_told_why(answer, says):
    (finding,) = LAB.check(answer).findings
    assert says in finding


def test_an_answer_that_fails_on_the_measured_link_alone_is_told_too(monkeypatch):
    monkeypatch.setattr(exercise, "drawn_cases", lambda draw: [])
    monkeypatch.setattr(exercise, "MEASURED", {"layers": 2, "width": 16, "batch": 8})
    (finding,) = LAB.check(lambda gradients, link: 1 / 0).findings
    assert "on this machine's link (measured): the function did not finish" in finding and "ZeroDivisionError" in finding


def test_a_right_answer_passes_on_computed_links_and_on_the_one_at_hand(monkeypatch):
    monkeypatch.setattr(exercise, "MEASURED", {"layers": 4, "width": 128, "batch": 256})

    def my_bucket_mb(gradients, link):
        from labkit.theory.overlap_model import MIB, predict

        caps = [gradients.total_bytes * 1.01 / MIB / parts for parts in range(1, 40)]
        return min(caps, key=lambda cap: predict(gradients, link, cap * MIB).step_s)

    results = [LAB.check(my_bucket_mb, seed=seed) for seed in range(2)]
    assert all(not result.findings for result in results), results  # noise may leave it open, and calls nobody wrong
