"""Recordings are records that say so."""

import sys

import pytest

from labkit import cli
from labkit.capture import capture, recordings
from labkit.errors import RecordError, UnknownName, UsageError
from labkit.labs import spec
from labkit.record.store import read_record


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))


@pytest.mark.ranks
def test_a_capture_is_read_back_as_recorded_with_its_device_and_date(tmp_path, monkeypatch, capsys):
    from labkit.labs import duplicate_data
    from labkit.labs.spec import Capture

    small = (
        Capture(name="a", variant="fixed", settings={"num_samples": 40}),
        Capture(name="b", variant="broken", settings={"lr": 0.1}),
    )
    import dataclasses

    monkeypatch.setattr(duplicate_data, "SPEC", dataclasses.replace(spec("duplicate-data"), captures=small))
    monkeypatch.setattr(sys, "argv", ["labkit", "capture", "--labs", "duplicate-data", "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0 and "2 recordings" in capsys.readouterr().out
    first, second = recordings("duplicate-data", tmp_path / "out")
    assert (first.variant, second.variant) == ("fixed", "broken")
    for record in (first, second):
        assert record.provenance.source == "recorded" and record.provenance.label().startswith("recorded 20")
        assert record.provenance.device and read_record(record.folder).run.world_size == 4


def test_a_lab_without_recordings_gives_none(tmp_path):
    assert list(recordings("duplicate-data", tmp_path)) == []


def test_a_folder_in_use_an_unknown_lab_and_no_time_are_refused(tmp_path):
    (tmp_path / "precious").write_text("mine")
    with pytest.raises(RecordError, match="not an empty folder"):
        capture(["duplicate-data"], tmp_path, minutes=1, tell=print)
    with pytest.raises(UnknownName, match="no lab 'mfo'.*'mfu'"):
        capture(["mfo"], tmp_path / "new", minutes=1, tell=print)
    with pytest.raises(UsageError, match="minutes must be above 0"):
        capture(None, tmp_path / "new", minutes=0, tell=print)
