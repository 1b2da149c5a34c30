"""Each detector of the mfu lab four ways, on records made by hand."""

import msgspec
import pytest

from labkit.detect.survey.baseline import baseline_of
from labkit.detect.utilisation import busy_not_useful, flop_convention, utilisation
from labkit.detect.utilisation.measures import mfu_measures
from labkit.record.load import Load
from labkit.record.schema import Run, Span, Step

from ..builders import crowded, head, record_of
from ..surveys import survey

FLOPS = {"matmul_params": 1000, "layers": 1, "hidden": 10, "seq": 100, "counted_flops_per_token": 18000.0,
         "executed_flops_per_token": 18000.0}  # fmt: skip
PER_TOKEN = 6 * 1000 + 12 * 10 * 100


def run_of(seconds, *, tokens=100, cpu_s=None, queued_s=None, updates=None, data_share=0.0, role="variant", **facts):
    """A run whose timed steps took `seconds`, after one to warm up."""
    from labkit.record.schema import RankLog

    steps, now = [], 0
    for number, second in enumerate([seconds[0], *seconds]):
        length = int(second * 1e9)
        spans = [Span("fetch", "data", now, now + int(length * data_share))] if data_share else []
        scalars = {"tokens": tokens} if tokens else {}
        scalars["cpu_s"] = second if cpu_s is None else cpu_s
        if queued_s is not None:
            scalars["queued_s"] = queued_s
        counts = {} if updates is None else {"updates": updates}
        steps.append(Step(number, 0, now, now + length, spans, scalars, counts))
        now += length
    return Run(role, (RankLog(head(0, 1, **{**FLOPS, "warm_up": 1, **facts}), tuple(steps)),), 1.0)


def ceiling(flops_per_s):
    return run_of([1.0, 1.0], tokens=0, role="ceiling", flops_per_step=float(flops_per_s))


def record(mfu, *, seconds=(1.0, 1.0, 1.0, 1.0), tuned_speed=None, **kwargs):
    run = run_of(list(seconds), **kwargs)
    others = {"ceiling": ceiling(100 * PER_TOKEN / mfu)}
    if tuned_speed:
        others["tuned"] = run_of([s / tuned_speed for s in seconds], role="tuned")
    return record_of(run, **others)


@pytest.mark.parametrize(
    ("given", "status", "reason"),
    [
        ({"mfu": 0.05}, "found", "kernels-small-or-bound-by-memory"),
        ({"mfu": 0.05, "data_share": 0.8}, "found", "waits-for-data"),
        ({"mfu": 0.25}, "clear", "utilisation-is-poor"),
        ({"mfu": 0.5}, "clear", "utilisation-passes"),
        ({"mfu": 0.25, "tuned_speed": 3.0}, "found", "slower-than-tuned"),
        ({"mfu": 0.25, "tuned_speed": 3.0, "data_share": 0.8}, "found", "slower-than-tuned-for-want-of-data"),
        ({"mfu": 0.25, "tuned_speed": 1.2}, "clear", "utilisation-is-poor"),
        ({"mfu": 0.2, "seconds": (0.5, 1.5, 0.6, 1.4)}, "inconclusive", "steps-vary-around-the-bound"),
    ],
)
def test_utilisation_is_judged_by_bands_by_the_tuned_run_and_by_the_spread(given, status, reason):
    verdict = utilisation.detect(record(**given))
    assert (verdict.status, verdict.reason) == (status, reason)
    assert verdict.numbers.get("mfu", given["mfu"]) == pytest.approx(given["mfu"])


def test_what_is_said_of_utilisation_holds_the_share_and_what_to_do():
    slow = utilisation.detect(record(0.25, tuned_speed=3.0))
    assert slow.cause.startswith("25% of what this device can do") and "3.0 times as fast" in slow.cause
    waits = utilisation.detect(record(0.05, data_share=0.8))
    assert "80% of a step is spent waiting for data" in waits.cause and "--set data=dummy" in waits.fix


def test_the_waste_is_the_time_that_the_tuned_run_does_not_need():
    assert utilisation.detect(record(0.05, tuned_speed=4.0)).waste == pytest.approx(0.75)
    assert utilisation.detect(record(0.05)).waste is None


def others_took(share, *roles, of):
    """The record, and what share of the one core that it wanted other programs took while these roles ran, on 2 cores."""
    crowd = {role: crowded(of, 1 + share).runs[role] if role in roles else run for role, run in of.runs.items()}
    return msgspec.structs.replace(of, runs=crowd)


@pytest.mark.parametrize(
    ("mfu", "hindered", "status"),
    [
        (0.3, (), "clear"),
        (0.3, ("ceiling",), "inconclusive"),  # the ceiling may be two and a half times as high
        (0.1, ("ceiling",), "found"),  # and this even smaller a share of it
        (0.1, ("variant",), "inconclusive"),  # with the cores to itself it would do more
        (0.3, ("variant",), "clear"),
        (0.1, ("variant", "ceiling"), "inconclusive"),
        (1.3, (), "inconclusive"),  # faster than can be
    ],
)
def test_what_other_programs_took_from_the_run_or_from_its_ceiling_is_doubt(mfu, hindered, status):
    verdict = utilisation.detect(others_took(0.6, *hindered, of=record(mfu)))
    assert verdict.status == status
    assert (verdict.reason == "faster-than-its-ceiling") == (mfu > 1)
    assert "%" not in verdict.cause or mfu <= 1


def test_without_a_ceiling_there_is_no_share_of_it():
    for detector in (utilisation, busy_not_useful):
        verdict = detector.detect(record_of(run_of([1.0, 1.0])))
        assert (verdict.status, verdict.reason) == ("not_applicable", "no-ceiling-measured")


def kept(**changes):
    """A record without a ceiling of its own, on a machine whose baseline is kept."""
    record = record_of(run_of([1.0] * 4, **{"precision": "fp32", **changes}))
    rates = {"fp32": 100 * PER_TOKEN / 0.05, "bf16": 100 * PER_TOKEN / 0.5}
    baseline = baseline_of(survey())
    assert baseline is not None
    kept_then = msgspec.structs.replace(baseline, matmul_flops_per_s=rates, date="2026-11-01T12:00:00+00:00")
    return msgspec.structs.replace(record, baseline=kept_then)


def test_without_a_ceiling_of_its_own_a_run_is_held_against_the_kept_baseline():
    verdict = utilisation.detect(kept())
    assert verdict.status == "found" and verdict.evidence["mfu"].value == pytest.approx(0.05)
    assert "baseline of 2026-11-01" in verdict.evidence["ceiling"].unit
    assert mfu_measures(kept())["mfu_attention"].value == pytest.approx(0.05)
    assert utilisation.detect(kept(precision="bf16")).evidence["mfu"].value == pytest.approx(0.5)


def test_a_baseline_without_the_runs_precision_is_no_ceiling():
    assert utilisation.detect(kept(precision="fp16")).status == "not_applicable"


def test_a_program_that_does_not_say_its_flops_is_not_judged_by_a_baseline():
    silent = kept(matmul_params=0)
    for detector in (utilisation, busy_not_useful):
        verdict = detector.detect(silent)
        assert (verdict.status, verdict.reason) == ("not_applicable", "no-flops-declared")


@pytest.mark.parametrize(
    ("mfu", "cpu_s", "status", "reason"),
    [
        (0.01, 0.95, "found", "busy-doing-little"),
        (0.01, 0.7, "inconclusive", "neither-busy-nor-idle"),
        (0.01, 0.1, "clear", "idle-and-it-shows"),
        (0.4, 0.95, "clear", "busy-with-what-the-model-needs"),
    ],
)
def test_busy_counts_against_a_run_only_where_it_does_no_arithmetic(mfu, cpu_s, status, reason):
    verdict = busy_not_useful.detect(record(mfu, cpu_s=cpu_s))
    assert (verdict.status, verdict.reason) == (status, reason)


def test_the_processors_time_says_nothing_of_a_gpu():
    found = record(0.01, cpu_s=0.95)
    log = found.run.ranks[0]
    on_gpu = msgspec.structs.replace(log, head=msgspec.structs.replace(log.head, device="cuda"))
    runs = {**found.runs, "variant": msgspec.structs.replace(found.run, ranks=(on_gpu,))}
    verdict = busy_not_useful.detect(msgspec.structs.replace(found, runs=runs))
    assert (verdict.status, verdict.reason) == ("not_applicable", "processor-time-of-a-gpu-run")


@pytest.mark.parametrize("tokens", [0, 100])
def test_a_loop_without_an_update_has_an_mfu_of_0_whatever_arithmetic_it_does(tokens):
    idle_weights = record(0.4, tokens=tokens, updates=0, cpu_s=0.95, elementwise_flops_per_step=1e5)
    assert mfu_measures(idle_weights)["mfu_attention"].value == 0.0
    assert "tokens_per_s" not in mfu_measures(idle_weights)
    verdict = busy_not_useful.detect(idle_weights)
    assert (verdict.status, verdict.reason) == ("found", "busy-training-nothing")
    verdict = utilisation.detect(idle_weights)
    assert (verdict.status, verdict.reason) == ("found", "trains-nothing")
    trained = record(0.4, updates=1)
    assert [detector.detect(trained).status for detector in (utilisation, busy_not_useful)] == ["clear", "clear"]


def test_its_arithmetic_is_said_as_hfu():
    found = mfu_measures(record(0.4, tokens=0, updates=0, elementwise_flops_per_step=0.03 * 100 * PER_TOKEN / 0.4))
    assert found["hfu"].value == pytest.approx(0.03)


@pytest.mark.parametrize(
    ("cpu_s", "queued_s", "updates", "mfu", "status"),
    [
        (0.43, 0.37, 0, 0.4, "found"),  # both cores kept busy by others: it wants 80 % of the cores, and gets 43 %
        (0.19, 0.41, 0, 0.4, "found"),
        (0.45, 0.0, 0, 0.4, "clear"),  # nobody took a core from it: it waits for something else
        (0.05, 0.12, 0, 0.4, "clear"),
        (0.15, 0.15, 0, 0.4, "inconclusive"),
        (0.43, 0.37, 1, 0.015, "clear"),  # with the cores to itself it would do 2.8 %
        (0.43, 0.37, 1, 0.005, "found"),
    ],
)
def test_a_core_that_other_programs_have_makes_no_program_idle(cpu_s, queued_s, updates, mfu, status):
    judged = busy_not_useful.detect(record(mfu, cpu_s=cpu_s, queued_s=queued_s, updates=updates))
    assert judged.status == status
    beside_others = "kept" in judged.numbers and judged.numbers["kept"].key == "cores-busy-beside-others"
    assert beside_others == (status != "clear") == ("busy without other programs" in judged.cause)


def test_a_script_that_tells_no_tokens_is_told_so_and_not_that_it_trains_nothing():
    silent = record(0.4, tokens=0, cpu_s=0.95)
    for detector in (utilisation, busy_not_useful):
        verdict = detector.detect(silent)
        assert (verdict.status, verdict.reason) == ("not_applicable", "no-tokens-declared")


@pytest.mark.parametrize(
    ("counted", "status", "reason"),
    [
        (18000.0, "clear", "counter-sees-what-the-formula-counts"),
        (18100.0, "clear", "counter-sees-what-the-formula-counts"),
        (6000.0, "found", "counter-misses-attention"),
        (24000.0, "found", "counter-and-formula-differ"),
        (0.0, "not_applicable", "no-flops-counted"),
    ],
)
def test_the_counter_is_compared_with_the_formula(counted, status, reason):
    verdict = flop_convention.detect(record(0.4, counted_flops_per_token=counted))
    assert (verdict.status, verdict.reason) == (status, reason)
    assert status != "found" or verdict.numbers["ratio"] == pytest.approx(counted / 18000)


def test_a_baseline_that_may_be_too_low_clears_nobody_and_is_said_where_it_is_used():
    """fp32 at 50 GFLOP/s where 173 is normal: an MFU of 60 % is one of 17."""
    load = Load(cores=2, wanted=2, before=1.4, during=1.4, own=0.6, seconds=6.0)
    good = kept(precision="bf16")
    low = utilisation.detect(msgspec.structs.replace(good, baseline=msgspec.structs.replace(good.baseline, load=load)))
    assert utilisation.detect(good).status == "clear"
    assert (low.status, low.reason) == ("inconclusive", "baseline-may-be-too-low")
    assert "other programs used 1.4 of 2 cores" in low.cause and "--refresh" in low.fix
    assert "other programs used 1.4 of 2 cores" in low.evidence["ceiling"].unit
