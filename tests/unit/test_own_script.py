"""What a script recorded is enough for some questions and figures; each of the others says what it lacks."""

import numpy as np
import pytest

import labkit
from labkit import detect
from labkit.errors import UsageError
from labkit.record.measures import loss_curve
from labkit.record.probe import Probe

from . import script_files

WHAT_TO_DO = ("record", "read ", "run ", "draw ", "watch ", "measure ", "declare", "leave ")


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("kind", script_files.KINDS)
def test_every_figure_is_drawn_or_says_what_to_record(tmp_path, kind, ranks):
    record = labkit.read_record(script_files.write(tmp_path / "mine", kind, ranks))
    drawn = set()
    for spec in labkit.labs_table():
        for name in spec.figures:
            try:
                labkit.Lab(spec).figure(name, record).save(tmp_path / "one.png")
                drawn.add(name)
            except UsageError as error:
                assert any(word in str(error) for word in WHAT_TO_DO), f"{name}: {error}"
    assert ("loss" in drawn) == (kind in ("reads and loss", "a NaN"))
    assert ("who-read-what" in drawn) == ("read" in kind)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("kind", script_files.KINDS)
def test_measures_tables_and_detectors_bear_a_record_that_lacks_what_they_need(tmp_path, kind, ranks):
    record = labkit.read_record(script_files.write(tmp_path, kind, ranks))
    for spec in labkit.labs_table():
        labkit.Lab(spec).measures(record)
        labkit.Lab(spec).tables(record)
    for name in detect.names():
        verdict = detect.detector(name)(record)
        assert verdict.cause
        assert verdict.fix or verdict.status == "clear" or name == "per-parameter-reduction", name


def test_a_loss_without_its_samples_says_what_to_record(tmp_path):
    record = labkit.read_record(script_files.write(tmp_path / "loss", "loss"))
    with pytest.raises(UsageError, match=r'probe.scalar\("batch_samples", len\(batch\)\)'):
        labkit.lab("duplicate-data").figure("loss", record)
    record = labkit.read_record(script_files.write(tmp_path / "reads", "reads"))
    with pytest.raises(UsageError, match=r'probe.scalar\("loss_local", loss.item\(\)\)'):
        labkit.lab("duplicate-data").figure("loss", record)


def test_a_loss_that_is_recorded_now_and_then_is_drawn_at_those_steps(tmp_path):
    probe = Probe(tmp_path / "rank-00000.jsonl")
    for step, _ in enumerate(probe.batches(np.arange(8).reshape(4, 2))):
        if step % 2:
            probe.scalar("loss_local", step)
    probe.close()
    curve = loss_curve(labkit.read_record(tmp_path).run)
    assert (curve.loss_global.tolist(), curve.samples.tolist()) == ([1.0, 3.0], [4.0, 8.0])
