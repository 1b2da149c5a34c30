"""`labkit bench`: measures once, answers from what it kept, says why it measures again; `labkit run start-here` as well."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import labkit

from labkit import cli
from labkit.labs.spec import configure
from labkit.labs.start_here import Config
from labkit.record.baseline import Baseline, baseline_file, write_baseline

ROOT = Path(__file__).resolve().parents[2]
QUICK = ("--set", "budget_s=0.3", "--set", "storage_mib=2", "--set", "copy_mib=8", "--set", "launches=1")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))


def wrong_use(capsys, monkeypatch, *words) -> str:
    monkeypatch.setattr(sys, "argv", ["labkit", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    printed = capsys.readouterr()
    assert ended.value.code == 2 and printed.out == "" and "Traceback" not in printed.err
    return printed.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bench", "--ranks", "two"], "--ranks must be a whole number; given 'two'; labkit bench --help says more"),
        (["bench", "--ranks", "0"], "ranks must be a whole number from 1 to"),
        (["bench", "--json", "no/such/folder/x.json"], "--json cannot write"),
        (["bench", "--device", "tpu"], "no device 'tpu'"),
        (["run", "start-here", "--variant", "broken"], "start-here is a survey and has no variants"),
        (["run", "start-here", "--set", "parts=some"], "no parts 'some'; there are: all, link"),
        (["run", "start-here", "--steps", "3"], "no setting 'steps'"),
        (["run", "start-hre"], "Did you mean 'start-here'?"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(capsys, monkeypatch, words, said):
    assert said in wrong_use(capsys, monkeypatch, *words)


@pytest.mark.parametrize("words", [["bench"], ["run", "start-here", "--set", "parts=link"]])
def test_a_link_of_many_ranks_to_a_core_is_refused_at_once_with_how_many_may_be_asked_for(capsys, monkeypatch, words):
    """99 ranks on 2 cores went on for minutes."""
    monkeypatch.setattr("labkit.request.usable_cores", lambda: 2)
    monkeypatch.setattr("labkit.request.visible_gpus", lambda: 0)
    said = wrong_use(capsys, monkeypatch, *words, "--ranks", "99", "--device", "cpu")
    assert "99 ranks on 2 cores" in said and "at most 16" in said


def test_a_damaged_baseline_is_named_with_its_file_and_not_repaired(capsys, monkeypatch):
    path = baseline_file()
    path.parent.mkdir(parents=True)
    path.write_text("not json")
    message = wrong_use(capsys, monkeypatch, "bench", "--device", "cpu")
    assert str(path) in message and "labkit bench --refresh" in message
    assert path.read_text() == "not json"


def test_help_of_the_survey_lists_its_settings_and_no_variants():
    done = labkit("run", "start-here", "--help-lab")
    assert done.returncode == 0 and "budget_s" in done.stdout and "variant" not in done.stdout
    assert configure(Config, {"budget_s": "2.5"}).budget_s == 2.5


@pytest.mark.ranks
def test_a_survey_is_run_as_any_lab_then_bench_answers_from_it_and_says_why_it_would_not():
    done = labkit("run", "start-here", "--device", "cpu", *QUICK)
    assert done.returncode == 0, done.stderr
    for part in ("start-here / survey: 2 ranks", "matmul_bf16", "GFLOP/s", "link", "kept in"):
        assert part in done.stdout
    shown = labkit("bench", "--device", "cpu")
    assert shown.returncode == 0, shown.stderr
    for part in ("matmul fp16", "GFLOP/s", "µs a step", "spread", "measured 2", "kept, ", "duplicate-data", "baseline-cpu"):
        assert part in shown.stdout, part
    report = json.loads(labkit("bench", "--device", "cpu", "--json", "-").stdout)
    assert report["lab"] == "start-here" and report["measured_now"] is False and report["verdicts"] == []
    assert set(report["measures"]["matmul_fp32"]) == {"value", "unit", "spread", "how"}
    assert report["baseline"]["world_size"] == 2 and 0 <= report["age_days"] < 1


@pytest.mark.ranks
def test_figures_that_a_record_cannot_show_are_named_and_the_others_drawn(tmp_path):
    assert labkit("run", "start-here", "--device", "cpu", "--set", "parts=link", *QUICK).returncode == 0
    done = labkit("show", "last", "--figures", tmp_path / "drawn")
    assert done.returncode == 0 and "not drawn: roofline: survey has no products" in done.stderr
    assert {path.name for path in (tmp_path / "drawn").iterdir()} == {"link.png", "repeats.png"}


@pytest.mark.ranks
def test_a_stale_baseline_is_measured_again_and_that_is_said_on_standard_error(monkeypatch, capsys):
    """Shorter than usual: the survey's settings are small."""
    monkeypatch.setattr("labkit.facade.Lab.run", _small(monkeypatch))
    foreign = Baseline(
        schema=1, device="another", device_kind="cpu", system="Linux", torch="1.0", cores=1, threads=1, backend="gloo",
        world_size=2, date="2020-01-01T00:00:00+00:00", matmul_flops_per_s={"fp32": 1e9}, copy_bytes_per_s=1e9,
    )  # fmt: skip
    write_baseline(foreign)
    monkeypatch.setattr(sys, "argv", ["labkit", "bench", "--device", "cpu", "--json", "-"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    printed = capsys.readouterr()
    assert not ended.value.code
    assert "measured: the kept one does not fit: it is of another device (another; here: " in printed.err
    assert "days old (at most 30)" in printed.err
    report = json.loads(printed.out)
    assert report["measured_now"] and {v["detector"] for v in report["verdicts"]} == {"link-fit", "cores", "page-cache"}
    assert report["baseline"]["torch"] != "1.0"


def _small(monkeypatch):
    from labkit.facade import Lab

    real, quick = Lab.run, dict(pair.split("=") for pair in QUICK if "=" in pair)
    return lambda self, *words, **how: real(self, *words, **how, **quick)


@pytest.mark.ranks
def test_it_joins_the_ranks_of_torchrun_and_then_has_no_launch_to_time(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d",
         "--rdzv-endpoint", "127.0.0.1:0", "-m", "labkit", "run", "start-here", "--device", "cpu", *QUICK, "--json",
         str(tmp_path / "x.json")],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    measures = json.loads((tmp_path / "x.json").read_text())["measures"]
    assert "launch" not in measures and measures["link_latency"]["value"] > 0 and measures["copy"]["value"] > 0
    assert done.stdout.count("start-here / survey") == 1, "rank 0 alone reports"
