"""The survey on real ranks, small: relations that hold on every machine, and torch's own benchmark as the oracle."""

import json
import math
import time

import msgspec
import pytest
import torch
from asking import values
from torch.utils.benchmark import Timer

import labkit
from labkit.bench import bench
from labkit.detect.survey.repeats import link_fit, link_repeats, operations
from labkit.errors import RecordError, UnknownName, UsageError
from labkit.labs.start_here.programs import message_sizes
from labkit.labs.start_here.storage import open_past_the_cache
from labkit.record.baseline import baseline_file, read_baseline, write_baseline
from labkit.theory.ceilings import all_reduce_s, crossover_bytes, matmul_work

pytestmark = pytest.mark.ranks

LAB = labkit.lab("start-here")
QUICK = {"budget_s": 0.5, "storage_mib": 2, "copy_mib": 16, "launches": 2, "max_message_mib": 4}
TRIES = 5


@pytest.fixture(scope="module")
def record(cache):
    """One whole survey, small; it is what the baseline of this module is."""
    return LAB.run(ranks=2, device="cpu", **QUICK)


@pytest.fixture(scope="module")
def alone(record):
    return LAB.run(ranks=1, device="cpu", parts="link", **QUICK)


def test_every_number_is_finite_and_above_zero(record):
    numbers = {name: v for name, v in values(record).items() if isinstance(v, float) and "_spread" not in name}
    assert set(numbers) >= {"matmul_fp32", "matmul_bf16", "matmul_fp16", "copy", "link_latency", "link_bandwidth",
                            "storage_sequential", "storage_random", "launch"}  # fmt: skip
    assert all(math.isfinite(number) and number > 0 for number in numbers.values()), numbers
    assert all(0 <= v < 1 for name, v in values(record).items() if "_spread" in name)


def test_each_launch_of_the_plan_left_what_it_measured(record):
    assert set(record.runs) == {"link", "launch-1", "launch-2", "compute", "storage"}
    assert record.runs["compute"].ranks[0].head.threads == record.runs["compute"].fact("cores")
    assert record.run.role == "link" and record.run.world_size == 2
    kernels = operations(record.runs["compute"])
    assert {"copy", "add", "matvec", "linear-16"} < set(kernels)
    assert all(operation.timing.repeats >= 4 for operation in kernels.values())


@pytest.mark.parametrize("role", ["link", "compute", "storage"])
def test_the_seconds_of_one_times_how_many_there_were_are_the_span_of_the_row(record, role):
    """The span was stamped by another clock, around the same row."""
    steps = record.runs[role].ranks[0].steps
    assert steps and (role == "compute" or max(step.counts["operations"] for step in steps) > 1)
    for step in steps:
        span = step.spans[0]
        row_s, span_s = step.scalar("seconds") * step.counts["operations"], (span.end_ns - span.start_ns) / 1e9
        assert row_s == pytest.approx(span_s, rel=0.2, abs=0.05), span.name
    rows = [(s.scalar("seconds") * s.counts["operations"], s.spans[0].end_ns - s.spans[0].start_ns) for s in steps]
    assert sum(row for row, _ in rows) == pytest.approx(sum(span for _, span in rows) / 1e9, rel=0.2)


def test_each_kernel_is_counted_by_what_it_cannot_but_do(record):
    kernels = operations(record.runs["compute"])
    for dtype, element_bytes in {"fp32": 4, "bf16": 2, "fp16": 2}.items():
        ran = kernels[f"matmul-{dtype}"]
        assert (ran.flops, ran.num_bytes) == matmul_work(ran.size, ran.size, ran.size, element_bytes)
    assert kernels["copy"].num_bytes == record.runs["compute"].fact("working_set_bytes") == 16 * 2**20
    intensity = {name: kernels[name].flops / kernels[name].num_bytes for name in ("copy", "add", "matvec", "linear-16")}
    assert intensity == pytest.approx({"copy": 0, "add": 1 / 12, "matvec": 1 / 2, "linear-16": 8}, rel=0.03)


def test_the_fit_meets_its_points_within_the_residuals_that_it_states(record):
    fit, baseline = link_fit(record), record.baseline
    assert fit.sizes.tolist() == message_sizes(2**22)
    assert baseline.link_alpha_s > 0
    for size, seconds in zip(fit.sizes, fit.measured_s, strict=True):
        predicted = all_reduce_s(size, 2, baseline.link_alpha_s, baseline.link_bytes_per_s)
        assert abs(predicted / seconds - 1) <= baseline.link_residual_max + 1e-9
    assert {len(seconds) for seconds in link_repeats(record.run).values()} == {7}


def test_the_rate_is_that_of_torchs_own_benchmark_within_a_generous_factor(record):
    """A factor of ten: other programs may run beside this one, and two threads that wait for a core are slow."""
    ran = operations(record.runs["compute"])["matmul-fp32"]
    a, b = torch.rand(ran.size, ran.size), torch.rand(ran.size, ran.size)
    timer = Timer("torch.mm(a, b)", globals={"torch": torch, "a": a, "b": b}, num_threads=record.baseline.threads)
    theirs = [min(timer.blocked_autorange(min_run_time=0.1).times) for _ in range(TRIES)]
    assert any(1 / 10 < ran.timing.best_s / seconds < 10 for seconds in theirs), (ran.timing, theirs)


def test_storage_says_how_the_page_cache_was_kept_out_and_leaves_no_file(record):
    said = str(record.runs["storage"].fact("cache_bypass"))
    assert said.startswith(("bypassed (", "dropped before each repeat (", "not bypassed"))
    assert said in values(record)["storage_cache"]
    assert not list(record.folder.rglob("storage.bin"))
    assert LAB.judge(record)["page-cache"].status in ("clear", "inconclusive", "found")


def test_without_o_direct_the_pages_are_dropped_and_what_stayed_is_counted(tmp_path, monkeypatch):
    import os

    if not hasattr(os, "posix_fadvise"):
        pytest.skip("this system has no posix_fadvise")
    monkeypatch.delattr(os, "O_DIRECT", raising=False)
    path = tmp_path / "file"
    with open(path, "wb") as file:
        file.write(bytes(2**20))
        os.fsync(file.fileno())
    opened = open_past_the_cache(path)
    try:
        assert opened.drops and "posix_fadvise" in opened.bypass
        os.pread(opened.descriptor, 2**20, 0)
        cached = undropped(opened).cached_share(2**20)
        assert cached == -1 or cached > 0.5, "just read, and not dropped"
        opened.forget()
        assert cached == -1 or opened.cached_share(2**20) < cached
        monkeypatch.delattr(os, "posix_fadvise")
        plain = open_past_the_cache(path)
        os.close(plain.descriptor)
        assert plain.bypass == "not bypassed" or "F_NOCACHE" in plain.bypass
    finally:
        os.close(opened.descriptor)


def undropped(opened):
    """The same file, from which nothing is dropped."""
    import dataclasses

    return dataclasses.replace(opened, drops=False)


def test_one_rank_has_no_link_and_says_why(alone):
    assert values(alone) == {}
    verdict = LAB.judge(alone)["link-fit"]
    assert (verdict.status, verdict.reason) == ("not_applicable", "one-rank-has-no-link") and "--ranks 2" in verdict.fix
    with pytest.raises(UsageError, match="no link to draw"):
        LAB.figure("link", alone)


def test_ranks_beyond_the_cores_are_found_and_the_link_alone_is_no_baseline(record):
    from labkit.ranks.backend import usable_cores

    ranks = usable_cores() + 1
    if ranks > 5:
        pytest.skip("many cores: too many ranks for a quick test")
    crowded = LAB.run(ranks=ranks, device="cpu", parts="link", **QUICK)
    assert LAB.judge(crowded)["cores"].status == "found"
    assert set(crowded.runs) == {"link"} and crowded.baseline is None
    assert read_baseline() == record.baseline


def test_the_record_comes_back_with_its_baseline_and_its_invariants(record):
    back = labkit.read_record(record.folder)
    assert back.baseline == record.baseline and LAB.measures(back) == LAB.measures(record)
    text = LAB.invariants(back)
    assert text == LAB.invariants(record) and text.count(": yes") == 4 and ": no" not in text
    for name in LAB.spec.figures:
        assert record.provenance.label() in LAB.figure(name, back).alt


# The baseline


def test_a_survey_is_kept_for_later_labs_unless_it_was_told_not_to(record, monkeypatch):
    assert read_baseline() == record.baseline
    monkeypatch.setattr("labkit.runner.execute", lambda *_: record.runs)
    time.sleep(1.1)  # the second survey differs by its date alone, which is in seconds
    assert LAB.run(ranks=2, device="cpu", keep="no").baseline != read_baseline() == record.baseline
    monkeypatch.undo()
    later = labkit.lab("duplicate-data").run("broken", ranks=1, device="cpu", steps=1)
    assert later.baseline == record.baseline
    assert labkit.read_record(later.folder).baseline == record.baseline


@pytest.mark.parametrize(
    "change", [{"torch": "1.0"}, {"device": "another"}, {"cores": 999}, {"date": "2020-01-01T00:00:00+00:00"}]
)
def test_a_foreign_or_stale_baseline_is_in_no_record(record, change):
    write_baseline(msgspec.structs.replace(record.baseline, **change))
    try:
        assert labkit.lab("duplicate-data").run("broken", ranks=1, device="cpu", steps=1).baseline is None
    finally:
        write_baseline(record.baseline)


def test_a_run_does_not_fail_for_a_damaged_baseline(record):
    baseline_file().write_text("{")
    try:
        assert labkit.lab("duplicate-data").run("broken", ranks=1, device="cpu", steps=1).baseline is None
        with pytest.raises(RecordError, match="damaged"):
            bench(device="cpu")
    finally:
        write_baseline(record.baseline)


def test_bench_answers_from_the_kept_baseline_and_says_its_age(record):
    found = bench(device="cpu")
    assert found.baseline == record.baseline and not found.measured_now and "old" in found.reason
    report = json.loads(msgspec.json.encode(found.report()))
    assert report["measures"]["copy"]["unit"] == "GB/s" and report["measures"]["copy"]["spread"] >= 0


@pytest.mark.parametrize(
    ("change", "ranks", "said"),
    [
        ({"date": "2020-01-01T00:00:00+00:00"}, None, "days old"),
        ({"torch": "1.0"}, None, "another torch (1.0; here: "),
        ({"world_size": 3}, 2, "it is of 3 ranks, and 2 were asked for"),
    ],
)
def test_bench_measures_again_where_the_kept_one_does_not_fit_and_says_why(record, monkeypatch, change, ranks, said):
    """The measurement itself is a stand-in here: what is tested is that it is asked for."""
    asked = []
    monkeypatch.setattr("labkit.facade.Lab.run", lambda self, **how: asked.append(how) or record)
    write_baseline(msgspec.structs.replace(record.baseline, **change))
    try:
        found = bench(device="cpu", ranks=ranks)
    finally:
        write_baseline(record.baseline)
    assert found.measured_now and said in found.reason and asked[0]["ranks"] == ranks
    assert [verdict.detector for verdict in found.verdicts] == list(LAB.spec.detectors)


# Wrong use


def test_wrong_use_is_refused_before_anything_starts():
    with pytest.raises(UsageError, match="has no variants; given 'broken'"):
        LAB.run("broken")
    with pytest.raises(UnknownName, match="Did you mean 'budget_s'"):
        LAB.run(budget=3)
    with pytest.raises(UsageError, match="storage_mib must be from 1 to"):
        LAB.run(storage_mib=0)
    with pytest.raises(UsageError, match="leave faults out"):
        LAB.run(faults=[labkit.Fault(kind="delay", rank=0, step=1, seconds=0.1)])
    with pytest.raises(UsageError, match="is a survey"):
        LAB.panel()


# The exercise


def solved(num_bytes, world_size, alpha_s, bytes_per_s):
    return all_reduce_s(num_bytes, world_size, alpha_s, bytes_per_s), crossover_bytes(world_size, alpha_s, bytes_per_s)


def ring(n, w, a, b):
    return 2 * (w - 1) * a + 2 * (w - 1) / w * n / b


def test_a_right_prediction_passes_however_it_is_written():
    assert LAB.check(solved).passed
    assert LAB.check(lambda n, w, a, b: [ring(n, w, a, b), w * a * b]).passed


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (lambda n, w, a, b: a + n / b, "2(W-1) steps"),
        (lambda n, w, a, b: a + 2 * (w - 1) / w * n / b, "paid once"),
        (lambda n, w, a, b: 2 * (w - 1) / w * n / b, "latency is missing"),
        (lambda n, w, a, b: ring(n, w, a, b) / 2, "half of the ring is missing"),
        (lambda n, w, a, b: 2 * (w - 1) * a + 2 * n / b, "the limit for many ranks"),
        (lambda n, w, a, b: 2 * (w - 1) * (a + n / b), "n/W bytes"),
        (lambda n, w, a, b: w * a + 2 * (w - 1) / w * n / b, "not W"),
        (lambda n, w, a, b: 2 * (w - 1) * a + 16 * (w - 1) / w * n / b, "not in bits"),
    ],
)
def test_the_usual_slips_are_named(seconds, said):
    (finding,) = LAB.check(lambda n, w, a, b: (seconds(n, w, a, b), w * a * b)).findings
    assert said in finding


def test_a_wrong_crossover_is_named_too():
    (finding,) = LAB.check(lambda n, w, a, b: (ring(n, w, a, b), a * b)).findings
    assert "a W remains" in finding and "should be" in finding


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda n, w, a, b: ring(n, w, a, b), "return two numbers"),
        (lambda n, w, a, b: None, "return two numbers"),
        (lambda n, w, a, b: ("a", "b"), "return two numbers"),
        (lambda n: n, "is called with (num_bytes, world_size, alpha_s, bytes_per_s), and yours takes (n)"),
        (lambda n, w, a, b: 1 / 0, "ZeroDivisionError"),
        (lambda n, w, a, b: (float("nan"), w * a * b), "nan"),
    ],
)
def test_what_is_no_answer_is_said_so(answer, said):
    findings = LAB.check(answer).findings
    assert findings and said in findings[0]
