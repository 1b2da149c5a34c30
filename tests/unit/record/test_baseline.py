"""The baseline is kept whole, read back equal, and refused where it is damaged or speaks for another machine."""

import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from labkit.detect.survey.baseline import baseline_of
from labkit.errors import RecordError
from labkit.record import store
from labkit.record.baseline import NoBaseline, baseline_file, read_baseline, reason_to_set_aside, write_baseline
from labkit.record.load import Load

from ..builders import crowded
from ..surveys import survey

HERE = {"device": "a processor", "system": "Linux x86_64", "torch": "2.9", "cores": 2}
NOW = datetime(2025, 1, 3, 3, 4, 5, tzinfo=UTC)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def baseline():
    return baseline_of(survey())


def test_it_comes_back_as_it_was_kept_beside_the_runs(baseline):
    path = write_baseline(baseline)
    assert read_baseline() == baseline
    assert path.parent == store.runs_folder().parent
    assert [p.name for p in path.parent.iterdir()] == ["baseline-cpu.json"], "nothing half-written stays"


def test_a_second_one_takes_the_place_of_the_first_and_each_kind_of_device_has_its_own(baseline):
    write_baseline(baseline)
    newer = msgspec.structs.replace(baseline, launch_s=9.0)
    write_baseline(newer)
    write_baseline(msgspec.structs.replace(baseline, device_kind="cuda"))
    assert read_baseline().launch_s == 9.0 and read_baseline("cuda").launch_s != 9.0


def test_none_is_a_named_error_that_says_how_to_make_one():
    with pytest.raises(NoBaseline, match="labkit bench"):
        read_baseline()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: "{", "truncated|damaged"),
        (lambda text: "[]", "damaged"),
        (lambda text: text.replace('"copy_bytes_per_s": 2', '"copy_bytes_per_s": -2'), "copy_bytes_per_s is out of range"),
        (lambda text: text.replace('"fp32": 2', '"fp32": -2'), r"matmul_flops_per_s\[fp32\] is out of range"),
        (lambda text: text.replace('"link_alpha_s": 0', '"link_alpha_s": -1'), "link_alpha_s is out of range"),
        (lambda text: text.replace('"schema": 1', '"schema": 99'), "schema 99, this labkit reads 1"),
        (lambda text: text.replace("2025-01-02", "yesterday"), "damaged"),
        (lambda text: text.replace("+00:00", ""), "no zone"),
        (lambda text: text.replace('"cores": 2', '"cores": "two"'), "cores"),
    ],
)
def test_a_damaged_one_is_named_by_its_file_with_the_remedy(baseline, change, said):
    path = write_baseline(baseline)
    before = path.read_text()
    path.write_text(change(before))
    assert path.read_text() != before
    with pytest.raises(RecordError, match=said) as caught:
        read_baseline()
    assert str(path) in str(caught.value) and "labkit bench --refresh" in str(caught.value)


def test_one_that_cannot_be_written_is_said(baseline, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "file"))
    with pytest.raises(RecordError, match="cannot keep the baseline in .*LABKIT_CACHE"):
        write_baseline(baseline)


def test_a_fresh_one_of_this_machine_fits(baseline):
    assert baseline.misfits(**HERE, now=NOW) == []


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"device": "another"}, "another device (a processor; here: another)"),
        ({"system": "Darwin arm64"}, "another system"),
        ({"torch": "2.13"}, "another torch (2.9; here: 2.13)"),
        ({"cores": 64}, "another cores (2; here: 64)"),
    ],
)
def test_one_of_another_machine_says_in_what(baseline, other, said):
    (reason,) = baseline.misfits(**HERE | other, now=NOW)
    assert said in reason


def test_an_old_one_says_its_age_and_one_from_the_future_too(baseline):
    assert baseline.misfits(**HERE, now=NOW + timedelta(days=29)) == []
    (reason,) = baseline.misfits(**HERE, now=NOW + timedelta(days=44))
    assert reason == "it is 45 days old (at most 30)"
    (reason,) = baseline.misfits(**HERE, now=NOW - timedelta(days=9))
    assert "in the future" in reason


def test_a_record_keeps_the_baseline_it_was_made_with_and_older_records_have_none(tmp_path, baseline):
    from .test_store import run_of, write_rank

    write_rank(tmp_path / "variant")
    record = msgspec.structs.replace(survey(), folder=tmp_path, baseline=baseline, runs={"variant": run_of([[[[1]]]])})
    store.write_record(record)
    assert store.read_record(tmp_path).baseline == baseline
    content = json.loads((tmp_path / "record.json").read_text())
    del content["baseline"]
    (tmp_path / "record.json").write_text(json.dumps(content))
    assert store.read_record(tmp_path).baseline is None


def test_its_file_is_moved_by_the_variable_that_moves_the_runs(tmp_path):
    assert baseline_file("cuda") == tmp_path / "cache" / "baseline-cuda.json"


# Taken on a machine that did other work


def busy(baseline, during=1.1):
    return msgspec.structs.replace(
        baseline, load=Load(cores=2, wanted=2, before=during, during=during, own=0.9, seconds=6.0)
    )


def test_one_that_was_taken_beside_other_programs_says_so_wherever_it_is_named(baseline):
    assert baseline.doubts == [] and baseline.caution == ""
    doubtful = busy(baseline)
    assert "other programs used 1.1 of 2 cores" in doubtful.label() and "--refresh" in doubtful.caution
    assert busy(baseline, 0.05).doubts == []
    wide = msgspec.structs.replace(baseline, spread={"matmul_fp32": 0.66, "launch": 0.9})
    assert wide.doubts == ["repeats of matmul fp32 differ by 66%"]


def test_one_with_doubts_is_kept_for_a_day_and_not_for_a_month(baseline):
    later = datetime.fromisoformat(baseline.date) + timedelta(days=3)
    assert baseline.misfits(**HERE, now=later) == []
    (why,) = busy(baseline).misfits(**HERE, now=later)
    assert "3 days old (at most 1, since other programs used 1.1 of 2 cores" in why
    assert busy(baseline).misfits(**HERE, now=datetime.fromisoformat(baseline.date)) == []


def test_one_with_doubts_does_not_take_the_place_of_a_better_one(baseline):
    now = datetime.now(UTC).isoformat()
    good = msgspec.structs.replace(baseline, date=now)
    assert reason_to_set_aside(busy(good)) == "", "there is none to lose"
    write_baseline(good)
    assert reason_to_set_aside(good) == ""
    why = reason_to_set_aside(busy(good))
    assert "not kept: other programs used 1.1 of 2 cores" in why and f"the one of {now[:10]}" in why
    assert why in msgspec.structs.replace(busy(good), set_aside=why).caution
    write_baseline(msgspec.structs.replace(good, date="2020-01-01T00:00:00+00:00"))
    assert reason_to_set_aside(busy(good)) == "", "it is too old to be better"
    write_baseline(busy(good))
    assert reason_to_set_aside(busy(good)) == "", "it has doubts of its own"


def test_a_survey_keeps_the_load_of_its_measurements_and_a_file_without_it_is_read_as_before(baseline):
    record = crowded(survey(), 1.1)
    assert baseline_of(record).load.during == 1.1 and baseline_of(record).doubts
    old = {k: v for k, v in msgspec.to_builtins(baseline).items() if k not in ("load", "set_aside")}
    assert msgspec.convert(old, type(baseline)) == baseline
