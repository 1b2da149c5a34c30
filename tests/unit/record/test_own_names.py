"""A script's own names that are labkit's too: it is told which, and no other question loses its answer."""

import json
import sys

import msgspec
import numpy as np
import pytest

import labkit
from labkit import cli, detect
from labkit.detect.precision.measures import memory_of
from labkit.detect.sharding.measures import kept
from labkit.record.probe import Probe
from labkit.record.schema import Event
from labkit.record.vocabulary import EVENTS, FACTS, event_misfit, fact_misfit

from .. import script_files

FOREIGN = {"nothing": {}, "others": {"other": 1, "why": "mine"}}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return labkit.read_record(script_files.write(tmp_path_factory.mktemp("own") / "mine", "reads and loss"))


def answers(record) -> dict[str, tuple]:
    return {verdict.detector: (verdict.status, verdict.reason, dict(verdict.numbers)) for verdict in labkit.judge(record)}


@pytest.fixture(scope="module")
def unclashed(plain):
    return answers(plain)


def with_events(record, *events):
    ranks = tuple(msgspec.structs.replace(log, events=(*log.events, *events)) for log in record.run.ranks)
    return msgspec.structs.replace(record, runs={"variant": msgspec.structs.replace(record.run, ranks=ranks)})


def with_facts(record, **facts):
    ranks = tuple(
        msgspec.structs.replace(log, head=msgspec.structs.replace(log.head, facts=facts)) for log in record.run.ranks
    )
    return msgspec.structs.replace(record, runs={"variant": msgspec.structs.replace(record.run, ranks=ranks)})


def fitting(kind):
    return next(value for value in (1, "nan", "words") if kind.fits(value))


def foreign_fields(name):
    """Fields of an event of labkit's, one at a time of another kind or missing."""
    yield from FOREIGN.values()
    for shape in EVENTS[name].shapes:
        whole = {field: fitting(term.kind) for field, term in shape.has.items()}
        for field, term in shape.fields.items():
            yield {**whole, field: 7 if term.kind.fits("words") else "words"}
            yield {**whole, field: -1}
            yield {other: value for other, value in whole.items() if other != field}


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_of_the_scripts_own_costs_no_other_question(plain, unclashed, name):
    for fields in foreign_fields(name):
        found = answers(with_events(plain, Event(name, 3, 0, fields)))
        assert found.keys() == unclashed.keys()
        changed = {detector: answer for detector, answer in found.items() if answer != unclashed[detector]}
        if event_misfit(name, fields):
            for status, reason, numbers in changed.values():
                assert status == "not_applicable" and reason in ("own-names", "own-names-and-more")
                assert f"the event {name} of rank 0, step 3, is not what labkit notes" in numbers["why"]
                assert "it has no field" in numbers["why"] or "its field" in numbers["why"]
        assert not [reason for _, reason, _ in found.values() if reason.endswith("-not-go-together")], (fields, found)


@pytest.mark.parametrize(
    ("name", "asks"), [("save", "lost-work"), ("timed", "precision-speed"), ("optimizer_knows", "optimizer-before-sharding")]
)
def test_the_question_that_asks_for_the_event_says_which_field_it_lacks(plain, name, asks):
    verdict = labkit.judge(with_events(plain, Event(name, 3, 0, FOREIGN["others"])))[asks]
    assert verdict.status == "not_applicable" and verdict.reason in ("own-names", "own-names-and-more")
    assert verdict.cause.startswith(f"the event {name} of rank 0") and verdict.cause.endswith(", so it was not counted")
    assert f"call your own event {name} something else" in verdict.fix


@pytest.mark.parametrize("value", ["x", 0, -1, -1.5, True, 1e308])
@pytest.mark.parametrize("name", sorted(FACTS.keys() - {"data_rank"}))  # of which any value says who reads the same
def test_a_fact_of_the_scripts_own_costs_no_other_question(plain, unclashed, name, value):
    found = answers(with_facts(plain, **{name: value}))
    if fact_misfit(name, value):
        for detector, (status, reason, numbers) in found.items():
            told = f"{name} is declared as" in str(numbers.get("why", ""))
            assert (status, reason, numbers) == unclashed[detector] or told
            assert status in ("not_applicable", unclashed[detector][0])
    assert found["rank-duplicates"][0] == "found"


def test_a_fact_that_cannot_be_is_named_where_it_is_asked_for(plain):
    verdict = labkit.judge(with_facts(plain, dataset_size="many"))["coverage"]
    assert (verdict.status, verdict.reason) == ("not_applicable", "own-names-and-more")
    why = "dataset_size is declared as 'many', and labkit reads it as a whole number from 0 on"
    assert verdict.numbers["why"].startswith(why) and verdict.cause.startswith(why)


def test_what_is_kept_at_the_first_update_and_at_other_instants_is_told_apart(plain):
    both = with_events(
        plain,
        Event("memory", 0, 0, {"instant": "init", "parameters": 8}),
        Event("memory", 0, 0, {"instant": "first_update", "parameters": 4, "gradients": 4, "optimizer_state": 8}),
    ).run
    assert memory_of(both) == {"weights_bytes": 4, "gradients_bytes": 4, "optimizer_bytes": 8}
    assert kept(both)["init"].tolist() == [[8, 0, 0, 0, 0]] * both.world_size


def test_labkits_own_events_beside_the_scripts_keep_their_answer(plain):
    fitting = Event("optimizer_knows", 0, 0, {"known": 2, "parameters": 2, "orphans": 0})
    found = answers(with_events(plain, Event("optimizer_knows", 1, 0, {"mine": 1}), fitting))
    assert found["optimizer-before-sharding"][0] == "clear"


def test_a_question_that_a_record_breaks_costs_no_other(plain, unclashed, monkeypatch):
    def broken(record):
        return {}["no such field"]

    monkeypatch.setattr("labkit.detect.reads.coverage.detect", broken)
    found = answers(msgspec.structs.replace(plain))  # one of which nothing was asked yet
    status, reason, numbers = found.pop("coverage")
    assert (status, reason) == ("not_applicable", "does-not-go-together")
    assert (numbers["said"], numbers["file"]) == ("KeyError: 'no such field'", "test_own_names.py")
    assert found == {detector: answer for detector, answer in unclashed.items() if detector != "coverage"}
    assert detect.ask("coverage", plain).fix


def test_show_reads_a_script_that_uses_labkits_names_for_its_own(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "mine"
    folder.mkdir()
    with Probe(folder / "rank-00000.jsonl") as probe:
        probe.declare(batch_size=0, workers=-1, dataset_size="all", warm_up="two", precision=16, lr="small")
        for name in EVENTS:
            probe.event(name, mine=1)
        for _ in probe.batches(np.arange(40).reshape(10, 4, 1)):
            probe.scalar("loss_local", 1.0)
    for words in ([], ["--lab", "crash-recovery"], ["--lab", "zero-stages"], ["--lab", "precision"], ["--lab", "mfu"]):
        target = tmp_path / "x.json"
        arguments = ["show", str(folder), *words, "--json", str(target), "--figures", str(tmp_path / "f")]
        monkeypatch.setattr(sys, "argv", ["labkit", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        assert ended.value.code == 0 and "Traceback" not in printed.err, printed.err
        assert "not measured" not in printed.err and "does not hold" not in printed.err, printed.err
        assert json.loads(target.read_text())["verdicts"]
