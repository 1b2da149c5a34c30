"""From a survey's record to its numbers: the best of a rate, the median of a time, the slowest rank of a collective."""

import msgspec
import pytest

from labkit.detect.survey.baseline import baseline_of
from labkit.detect.survey.measures import invariants, survey_measures
from labkit.detect.survey.repeats import launches, link_fit, link_repeats, operations
from labkit.record.baseline import quantities

from ..surveys import ALPHA_S, BYTES_PER_S, COPY, RATES, SIZES, launch_runs, link_run, storage_run, survey


def test_rates_are_those_of_the_best_repeat_and_carry_their_spread():
    baseline = baseline_of(survey())
    assert baseline.matmul_flops_per_s == pytest.approx(RATES) and baseline.copy_bytes_per_s == pytest.approx(COPY)
    assert baseline.spread["matmul_fp32"] == pytest.approx(1 - 1 / 1.1)
    assert baseline.how["matmul_bf16"] == "1024³ product, 1 thread, best of 3"
    assert baseline.how["copy"].startswith("256 MiB read + written, 8 × the last-level cache")


def test_a_launch_and_a_random_read_are_those_of_the_median():
    baseline = baseline_of(survey())
    assert baseline.launch_s == 0.2 and baseline.storage_random_read_s == pytest.approx(60e-6)
    assert baseline.storage_sequential_bytes_per_s == pytest.approx(1e9)


def test_an_all_reduce_lasts_as_long_as_its_slowest_rank():
    fast, slow = link_run(), link_run(distort=dict.fromkeys(SIZES, 3.0))
    both = msgspec.structs.replace(fast, ranks=(fast.ranks[0], msgspec.structs.replace(slow.ranks[0])))
    assert link_repeats(both)[1024].min() == link_repeats(slow)[1024].min() > link_repeats(fast)[1024].min()


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_link_comes_back_from_the_medians(ranks):
    fit = link_fit(survey(ranks))
    assert fit.world_size == ranks and fit.sizes.tolist() == list(SIZES)
    assert fit.alpha_s == pytest.approx(1.05 * ALPHA_S) and fit.bytes_per_s == pytest.approx(BYTES_PER_S / 1.05)


def test_one_rank_has_no_link_and_says_why():
    record = survey(1)
    baseline = baseline_of(record)
    assert link_fit(record) is None and baseline.link_alpha_s is None and baseline.link_bytes_per_s is None
    assert "--ranks 2" in baseline.how["link_latency"]
    assert "link_latency" not in survey_measures(record) and "matmul_fp32" in survey_measures(record)


def test_ranks_that_torchrun_started_have_no_launch_to_time():
    record = survey(**launch_runs(here=False))
    assert launches(record) == [] and baseline_of(record).launch_s is None
    assert "another launcher" in baseline_of(record).how["launch"]


def test_a_single_launch_has_no_spread():
    record = survey()
    runs = {role: run for role, run in record.runs.items() if role not in ("launch-2", "launch-3")}
    assert "launch" not in baseline_of(msgspec.structs.replace(record, runs=runs)).spread


def test_a_record_of_the_link_alone_is_no_baseline():
    record = msgspec.structs.replace(survey(), runs={"link": link_run()})
    assert baseline_of(record) is None
    assert set(survey_measures(record)) == {"link_latency", "link_bandwidth", "link_residual_max"}


def test_every_measure_has_a_unit_and_the_numbers_are_in_it():
    found = quantities(baseline_of(survey()))
    assert all(quantity.unit for quantity in found.values())
    assert found["matmul_fp32"].value == pytest.approx(200) and found["matmul_fp32"].unit == "GFLOP/s"
    assert found["link_latency"].value == pytest.approx(210) and found["link_latency"].unit == "µs a step"


def test_what_is_not_an_operation_is_none():
    assert operations(None) == {} and operations(launch_runs()["launch-1"]) == {}


def test_the_invariants_hold_no_number_and_turn_when_an_order_is_broken():
    lines = "\n".join(invariants(survey()))
    assert "matmul_fp16: GFLOP/s" in lines and lines.count(": yes") == 4
    assert not any(character.isdigit() for character in lines.replace("fp32", "").replace("fp16", "").replace("bf16", ""))
    broken = survey(storage=storage_run(rate=1e6))
    assert "  reading in order is faster than at random: no" in invariants(broken)
    shrinking = {size: 1 / (i + 1) ** 4 for i, size in enumerate(SIZES)}
    falling = survey(link=link_run(distort=shrinking))
    assert "  the largest message takes longer than the smallest: no" in invariants(falling)
