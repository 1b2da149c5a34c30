"""A record that was asked knows the answer: each detector, measure and table is worked out once, whoever asks."""

import sys
from collections import Counter

import msgspec
import pytest

import labkit
from labkit import cli, detect, labs
from labkit.errors import RecordError, UnknownName, UsageError
from labkit.reading import Reading, reading_of
from labkit.record.schema import Origin, Record
from labkit.record.store import write_record
from labkit.view.widgets import Panel

from . import script_files
from .builders import in_batches, record_of, run_of, shares, shuffled

LAB = labkit.Lab(labs.spec("duplicate-data"))
SAME = in_batches(shuffled(40, 1), 8)


@pytest.fixture
def asked(monkeypatch):
    """Counts how often each detector is asked, and each lab's measures and tables."""
    count: Counter = Counter()
    find = detect.detector

    def counted(name):
        judge = find(name)

        def ask(record):
            count[name] += 1
            return judge(record)

        return ask

    monkeypatch.setattr(detect, "detector", counted)
    for spec in labs.specs():
        for what in ("measures", "tables"):
            make = getattr(spec, what)

            def made(record, make=make, key=f"{spec.slug} {what}"):
                count[key] += 1
                return [] if make is None else make(record)

            monkeypatch.setitem(spec.__dict__, what, made)
    return count


def record() -> Record:
    return record_of(run_of([[SAME] * 4], dataset_size=40, batch_size=8))


def test_whoever_asks_a_record_each_question_is_asked_once(asked):
    one = record()
    for _ in range(2):
        for ask in (LAB.judge, LAB.measures, LAB.tables, LAB.report, LAB.invariants, LAB.compare):
            ask(one)
        assert labkit.judge(one) is LAB.judge(one)
    reading = reading_of(one)
    assert reading.verdicts is LAB.judge(reading) and reading.measures == LAB.measures(one)
    assert {*asked} == {*LAB.spec.detectors, "duplicate-data measures", "duplicate-data tables"}
    assert {*asked.values()} == {1}


def test_the_command_line_asks_each_question_once(asked, tmp_path, monkeypatch, capsys):
    folder = script_files.write(tmp_path / "mine", "reads")
    words = ["labkit", "show", str(folder), "--json", str(tmp_path / "x.json"), "--fail-on", "inconclusive", "--all"]
    monkeypatch.setattr(sys, "argv", [*words, "--figures", str(tmp_path / "drawn")])
    with pytest.raises(SystemExit):
        cli.main()
    assert "rank-duplicates" in capsys.readouterr().out
    assert {*detect.names()} <= {*asked} and "duplicate-data measures" in asked
    assert {*asked.values()} == {1}


def test_the_panel_asks_each_question_once_however_often_its_cost_meter_changes(asked):
    class Quick(labkit.Lab):
        def run(self, variant="broken", **how):
            return msgspec.structs.replace(record(), config={"num_samples": 1797, "batch": 32})

    panel = Panel(Quick(LAB.spec))
    panel._run.click()
    assert panel.wait(20) and "they do the work of one" in panel._verdict.value
    for gpus in range(100, 110):
        panel._meter["num_gpus"].value = gpus
        assert f"on {gpus} GPUs" in panel._cost.value
    assert {*asked} >= set(LAB.spec.detectors) and {*asked.values()} == {1}


def test_a_reading_takes_its_records_place():
    one = record()
    reading = reading_of(one)
    assert isinstance(reading, Record) and reading.run is one.run and reading.variant == "broken"
    assert repr(reading) == repr(one) and reading._repr_html_() == one._repr_html_()
    assert detect.detector("rank-duplicates")(reading) == detect.detector("rank-duplicates")(one)
    assert reading_of(reading) is reading and reading_of(one) is reading
    assert reading.waste == 0.75


def test_what_was_changed_is_asked_anew():
    reading = reading_of(record())
    assert reading.verdicts["rank-duplicates"].status == "found"
    apart = [in_batches(share, 8) for share in shares(shuffled(40, 2), 4)]
    apart = msgspec.structs.replace(reading, runs={"variant": run_of([apart], dataset_size=40, batch_size=8)})
    assert isinstance(apart, Reading) and apart.verdicts["rank-duplicates"].status == "clear"


def test_another_lab_asks_its_own_questions_of_the_same_record():
    one = record()
    assert [v.detector for v in labkit.Lab(labs.spec("overlap")).judge(one)] == list(labs.spec("overlap").detectors)
    assert [v.detector for v in LAB.judge(one)] == list(LAB.spec.detectors)


def test_read_gives_a_scripts_record_with_every_answer_and_a_labs_with_its_labs(tmp_path, monkeypatch):
    reading = labkit.read(script_files.write(tmp_path / "mine", "reads"))
    assert reading.origin is Origin.SCRIPT and {v.detector for v in reading.verdicts} == set(detect.names())
    assert reading.measures["unique_samples"].value == 4 * script_files.STEPS and reading.report()["lab"] == ""
    assert {"who-read-what", "coverage"} <= set(reading.figures) and reading.figure("coverage").alt
    by_lab = labkit.read(tmp_path / "mine", lab="overlap")
    assert [v.detector for v in by_lab.verdicts] == list(labs.spec("overlap").detectors)
    assert by_lab.report()["lab"] == "overlap"
    with pytest.raises(UnknownName, match="no figure of this record 'loss'"):
        by_lab.figure("loss")
    with pytest.raises(UnknownName, match="Did you mean 'overlap'"):
        labkit.read(tmp_path / "nowhere", lab="overlp")
    with pytest.raises(UsageError, match="path must be"):
        labkit.read(3)  # pyright: ignore


def test_a_record_says_who_had_it_made(tmp_path):
    for rank, log in enumerate(record().run.ranks):
        (tmp_path / "variant").mkdir(exist_ok=True)
        lines = [log.head, *log.steps, *log.events]
        data = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        (tmp_path / "variant" / f"rank-{rank:05d}.jsonl").write_bytes(data)
    write_record(msgspec.structs.replace(record(), folder=tmp_path))
    assert labkit.read_record(tmp_path).origin is Origin.LAB
    reading = labkit.read(tmp_path)
    assert reading.origin is Origin.LAB and reading.by is LAB.spec
    assert b"origin" not in (tmp_path / "record.json").read_bytes()


def test_what_a_lab_cannot_measure_is_left_out_of_a_reading_and_said_to_who_asks_the_lab(monkeypatch):
    def odd(record):
        raise ValueError("odd")

    monkeypatch.setitem(LAB.spec.__dict__, "measures", odd)
    one = record()
    reading = reading_of(one)
    assert reading.measures == {} and len(reading.left_out) == 1 and "odd" in reading.left_out[0]
    assert reading.verdicts["rank-duplicates"].status == "found"
    with pytest.raises(RecordError, match="does not hold what duplicate-data records"):
        LAB.measures(one)


def test_the_measures_that_come_first_are_the_labs_own():
    main = reading_of(record()).main_measures
    assert main == ("samples_per_epoch", "unique_samples", "unique_share_of_global_batch", "rank_overlap")


def test_where_no_lab_says_which_measures_come_first_all_do(monkeypatch):
    monkeypatch.setitem(LAB.spec.__dict__, "main_measures", ())
    reading = reading_of(record())
    assert reading.main_measures == tuple(reading.measures) and len(reading.main_measures) > 4


def test_a_comparison_is_read_off_its_tables(monkeypatch):
    monkeypatch.setitem(LAB.spec.__dict__, "main_measures", ("peak",))
    assert reading_of(record()).main_measures == ()
