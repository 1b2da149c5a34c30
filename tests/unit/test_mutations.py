"""Whatever became of a record's files, what is said of them is a named error or verdicts: no traceback, no hang."""

from __future__ import annotations

import contextlib
import itertools
import random
import shutil
import signal
from collections import Counter

import msgspec
import numpy as np
import pytest

import labkit
from labkit.detect.verdict import STATUSES
from labkit.errors import LabkitError
from labkit.reading import reading_of
from labkit.record.schema import Origin
from labkit.view.trace import chrome_trace

from . import crash_records, input_runs, surveys, zero_runs
from .builders import record_of, run_of
from .detect import readings
from .mutations import files_of, mutated

PATIENCE_S = 60
SOME, MANY = 300, 10_000
A_FIGURE_IN = 25


def bases():
    fixed, broken = readings.fixed(24, 2, 4), readings.identical(24, 2, 4)
    single = msgspec.structs.replace(run_of(readings.fixed(24, 1, 8)), role="single")
    whole = {"weights": np.arange(6.0)}
    yield (
        "fixed",
        record_of(
            msgspec.structs.replace(
                run_of(fixed, dataset_size=24, batch_size=4, workers=0, validation=[[1, 2], [3]]), arrays=whole
            ),
            single=msgspec.structs.replace(single, arrays=whole),
        ),
    )
    yield "broken", record_of(run_of(broken, ids=False, dataset_size=24), single=single)
    script = record_of(run_of(broken, dataset_size=24))
    yield "script", msgspec.structs.replace(script, lab="", origin=Origin.SCRIPT, runs={"variant": script.run})
    yield "crash", crash_records.crash_record(crash_records.saved_and_resumed(), crash_records.uninterrupted())
    yield "zero", zero_runs.record(zero_runs.run_with(), cheaper=zero_runs.cheaper_run())
    yield "input", input_runs.record(input_runs.steady(3, 5, ranks=2), ready=input_runs.steady(0, 5, role="ready"))
    yield "survey", surveys.survey()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The files of each base, by its name; a script's have no record.json."""
    found = {}
    for name, record in bases():
        files = files_of(record, tmp_path_factory.mktemp("base") / name)
        if name == "script":
            files = {path.removeprefix("variant/"): data for path, data in files.items() if path != "record.json"}
        found[name] = files
    return found


def texts(value):
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in texts(part)]
    if isinstance(value, (list, tuple)):
        return [text for part in value for text in texts(part)]
    return [value] if isinstance(value, str) else []


def ask_all(folder, draw: str) -> Counter:
    """Read a record and show it on every face, as `labkit show` does; count what came of it."""
    found: Counter = Counter()
    try:
        record = labkit.read_record(folder)
        reading = reading_of(record)
    except LabkitError as error:
        assert "Traceback" not in str(error) and "MemoryError" not in str(error)
        return Counter({"refused": 1})
    for verdict in reading.verdicts:
        assert verdict.status in STATUSES and verdict.cause and "MemoryError" not in verdict.cause
        found["unanswered"] += verdict.reason.endswith("-not-go-together")
    pages = [each._repr_html_() for each in (reading.verdicts, record, *reading.tables)]
    shown = [*pages, repr(record), repr(reading.verdicts), *map(repr, reading.tables), *reading.left_out]
    report = reading.report()
    msgspec.json.encode(report)
    if draw:
        with contextlib.suppress(LabkitError):
            msgspec.json.encode(chrome_trace(record))
        names = list(reading.figures)
        for name in names[:1] if draw == "one" else names:
            with contextlib.suppress(LabkitError):
                shown.append(reading.figure(name).alt)
    for text in [*shown, *texts(report)]:
        assert text.replace("\n", "").isprintable()
    assert not [page for page in pages if "<b>" in page]
    return found + Counter({"answered": 1})


def overdue(*_):
    raise AssertionError(f"it took longer than {PATIENCE_S} s")


def try_mutations(written, folder, number: int, seed: int) -> Counter:
    outcome: Counter = Counter()
    signal.signal(signal.SIGALRM, overdue)
    for at, name in zip(range(number), itertools.cycle(written)):
        files, said = mutated(written[name], random.Random(f"{seed}-{at}"))
        for path, data in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        signal.alarm(PATIENCE_S)
        try:
            outcome += ask_all(folder, "one" if at % A_FIGURE_IN == 0 else "")
        except BaseException as error:
            raise AssertionError(
                f"mutation {at} of seed {seed}, of {name}: {said}: {type(error).__name__}: {error}"
            ) from error
        finally:
            signal.alarm(0)
            shutil.rmtree(folder)
    return outcome


def test_what_was_not_changed_is_answered(written, tmp_path):
    for name, files in written.items():
        for path, data in files.items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_bytes(data)
        assert ask_all(tmp_path / name, "one") == {"answered": 1}, name


@pytest.mark.timeout(300)
def test_some_mutations_of_records_end_in_named_errors_or_verdicts(written, tmp_path):
    outcome = try_mutations(written, tmp_path / "record", SOME, seed=0)
    assert min(outcome["refused"], outcome["answered"]) > SOME / 10, outcome


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_mutations_of_records_end_in_named_errors_or_verdicts(written, tmp_path):
    outcome = try_mutations(written, tmp_path / "record", MANY, seed=1)
    print(f"\n{MANY:,} mutations: {dict(outcome)}")
    assert min(outcome["refused"], outcome["answered"]) > MANY / 10, outcome
