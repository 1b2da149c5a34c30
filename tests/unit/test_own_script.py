"""What a script recorded is enough for some questions and figures; each of the others says what it lacks."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import labkit
from labkit import cli, detect
from labkit.detect.catalogue import Reason, catalogue
from labkit.detect.loss import loss_curve
from labkit.detect.survey import reasons as survey_reasons
from labkit.errors import UsageError
from labkit.record.probe import Probe
from labkit.record.schema import Origin

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


def shown(capsys, monkeypatch, *words) -> tuple[str, str]:
    """What `labkit show` prints, on standard output and on standard error, in lines that are not folded."""
    monkeypatch.setattr(sys, "argv", ["labkit", "show", *map(str, words)])
    monkeypatch.setenv("COLUMNS", "400")
    with pytest.raises(SystemExit) as ended:
        cli.main()
    printed = capsys.readouterr()
    assert ended.value.code == 0, printed
    return printed.out, printed.err


def test_every_question_is_asked_of_a_script_and_what_was_found_comes_first(tmp_path):
    record = labkit.read_record(script_files.write(tmp_path, "reads and loss"))
    verdicts = labkit.judge(record)
    assert {verdict.detector for verdict in verdicts} == set(detect.names())
    statuses = [verdict.status for verdict in verdicts]
    assert statuses == sorted(statuses, key=["found", "inconclusive", "clear", "not_applicable"].index)
    assert verdicts[0].detector == "rank-duplicates" and verdicts["non-finite"].status == "clear"
    folded = statuses.count("not_applicable")
    closing = f"{folded} more questions need what was not recorded: labkit.lab(SLUG).judge(record) says what"
    for text in (repr(verdicts), verdicts._repr_html_()):
        assert closing in text and detect.detector("straggler")(record).question not in text
    own = labkit.lab("stale-gradients").judge(record)
    assert [verdict.detector for verdict in own] == ["stale-gradients", "repeatable", "straggler"]
    assert "version_pulled" in repr(own) and own.closing() == ""


def test_a_labs_record_is_judged_by_its_lab(tmp_path):
    from .builders import record_of, run_of

    record = record_of(run_of([[[[0, 1]], [[0, 1]]]]))
    assert [v.detector for v in labkit.judge(record)] == list(labkit.lab("duplicate-data").spec.detectors)


def test_a_record_that_answers_nothing_still_says_how_to_go_on(tmp_path):
    verdicts = labkit.judge(labkit.read_record(script_files.write(tmp_path, "empty steps")))
    assert repr(verdicts).startswith(f"{len(detect.names())} more questions need what was not recorded")


def test_show_of_a_script_names_its_folder_and_leaves_out_what_does_not_apply(tmp_path, capsys, monkeypatch):
    folder = script_files.write(tmp_path / "my-run", "reads")
    monkeypatch.chdir(folder)
    out, _ = shown(capsys, monkeypatch, ".")
    assert "your script: my-run: 2 ranks, 12 steps" in out and "rank-duplicates" in out
    assert "more questions need what was not recorded: labkit show . --lab SLUG says what" in out
    assert "NOT APPLICABLE" not in out and "kept in" not in out and "--set" not in out and "ended early" not in out


def test_show_by_a_lab_says_what_its_questions_lack(tmp_path, capsys, monkeypatch):
    folder = script_files.write(tmp_path / "my-run", "reads")
    out, _ = shown(capsys, monkeypatch, folder, "--lab", "overlap", "--json", tmp_path / "x.json")
    assert "NOT APPLICABLE" in out and "watch_ddp(ddp, probe)" in out and "duplicate" not in out
    report = json.loads((tmp_path / "x.json").read_text())
    assert report["lab"] == "overlap" and report["variant"] == "my-run"
    assert [verdict["detector"] for verdict in report["verdicts"]] == list(labkit.lab("overlap").spec.detectors)


def test_the_json_of_a_script_keeps_its_keys(tmp_path, capsys, monkeypatch):
    out, _ = shown(capsys, monkeypatch, script_files.write(tmp_path / "mine", "reads"), "--json", "-")
    report = json.loads(out)
    assert list(report) == ["lab", "variant", "config", "provenance", "measures", "verdicts", "record"]
    assert report["lab"] == "" and report["measures"]["unique_samples"]["value"] == 4 * script_files.STEPS
    assert len(report["verdicts"]) == len(detect.names())


@pytest.mark.parametrize("lab", [[], ["--lab", "duplicate-data"]])
def test_a_figure_that_lacks_something_is_left_out_with_a_line_and_the_others_are_drawn(tmp_path, capsys, monkeypatch, lab):
    folder = script_files.write(tmp_path / "mine", "reads")
    _, said = shown(capsys, monkeypatch, folder, "--figures", tmp_path / "figures", *lab)
    assert "not drawn: loss: " in said and 'probe.scalar("loss_local", loss.item())' in said
    drawn = {path.stem for path in (tmp_path / "figures").glob("*.png")}
    assert {"who-read-what", "coverage", "timeline"} <= drawn and "loss" not in drawn


def test_ranks_that_did_not_close_their_probes_are_named(tmp_path, capsys, monkeypatch):
    for rank in range(3):
        probe = Probe(tmp_path / f"rank-{rank:05d}.jsonl", rank=rank, world_size=3)
        for _ in probe.batches(np.arange(24).reshape(6, 4)[: 5 - rank]):
            pass
        probe.close(finished=rank == 0)
    record = labkit.read_record(tmp_path)
    early = "ended early: rank 1 did not close its probe after step 3, rank 2 did not close its probe after step 2"
    assert early in repr(record) and early in record._repr_html_()
    assert early in shown(capsys, monkeypatch, tmp_path)[0]


def test_what_a_script_printed_is_not_on_record(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["labkit", "show", str(script_files.write(tmp_path, "loss")), "--output", "0"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2 and "labkit did not start this script" in capsys.readouterr().err


def validated(folder: Path, held_out: range, *, by: int = 1, max_steps: int | None = None):
    """Two ranks that train on 0..63, of which the first `by` validate after each epoch, all read through `probe.batches`."""
    for rank in range(2):
        probe = Probe(folder / f"rank-{rank:05d}.jsonl", rank=rank, world_size=2)
        probe.declare(dataset_size=64)
        for epoch in range(2):
            order = np.random.default_rng(epoch).permutation(64)[rank::2].reshape(8, 4)
            for place, _ in enumerate(probe.batches(order, epoch=epoch, max_steps=max_steps)):
                probe.scalar("grad_norm", 1 + place)
            if rank < by:
                for _ in probe.batches(np.array(held_out).reshape(-1, 4), epoch=epoch, name="validation"):
                    pass
        probe.close()
    return labkit.judge(labkit.read_record(folder))


def test_a_validation_pass_of_one_rank_is_no_training(tmp_path):
    verdicts = validated(tmp_path, range(64, 80))
    assert not verdicts.found
    assert {verdicts[name].status for name in ("coverage", "validation-leak", "rank-duplicates")} == {"clear"}


def test_a_validation_pass_does_not_end_the_epoch_of_the_training(tmp_path):
    assert validated(tmp_path, range(64, 80), by=2, max_steps=6)["coverage"].status == "inconclusive"


def test_a_leak_is_found_in_a_validation_pass_that_was_read_as_batches(tmp_path):
    leak = validated(tmp_path, range(32, 80))["validation-leak"]
    assert leak.status == "found" and leak.evidence["leaked_samples"].value == 32


OPTION = re.compile(r"(?<!labkit bench )--[a-z]|Fault\(|in the role")
"""What only a run of a lab can be given; a baseline is everybody's."""


def for_scripts(reason) -> list[str]:
    """What is said of a record that a script wrote."""
    return [reason.cause, reason.script or reason.fix]


def test_a_detector_advises_an_option_to_a_lab_alone():
    of_surveys = {**survey_reasons.LINK_FIT, **survey_reasons.PAGE_CACHE}  # of launches that a script has not
    wrong = {key for key, reason in catalogue().items() if any(map(OPTION.search, for_scripts(reason)))}
    assert not wrong - of_surveys.keys()


def test_an_option_in_what_is_advised_is_seen():
    assert any(map(OPTION.search, for_scripts(Reason("a cause", "run it with --set repeats=1"))))
    assert not any(map(OPTION.search, for_scripts(Reason("a cause", "run it with --set repeats=1", "run it twice"))))


def test_advice_depends_on_who_wrote_the_record(tmp_path):
    import msgspec

    record = labkit.read_record(script_files.write(tmp_path, "reads"))
    assert "--set" not in labkit.lab("stale-gradients").judge(record)["repeatable"].fix
    of_lab = msgspec.structs.replace(record, lab="stale-gradients", origin=Origin.LAB)
    assert "--set repeats=1" in labkit.lab("stale-gradients").judge(of_lab)["repeatable"].fix
    report = labkit.lab("stale-gradients").report(of_lab)
    assert "--set repeats=1" in msgspec.json.encode(report).decode()
