"""Whatever a record holds, each question gets a verdict: no detector raises, and nonsense accuses nobody."""

from __future__ import annotations

import math

import pytest

from labkit import detect
from labkit.detect.verdict import STATUSES, Verdict
from labkit.record.schema import Record
from labkit.record.vocabulary import fact_misfit

from .hostile_records import SHAPES, everywhere, kinds, with_counts, with_facts, with_scalars

each_kind = pytest.mark.parametrize("kind", list(kinds()))


def answers(record: Record) -> dict[str, Verdict]:
    """The answer to each question; refuses one that is none."""
    found = {name: detect.ask(name, record) for name in detect.names()}
    for name, verdict in found.items():
        assert verdict.status in STATUSES and verdict.detector == name and str(verdict)
        assert verdict.waste is None or 0 <= verdict.waste <= 1, (name, verdict.waste)
        assert verdict.cause or verdict.status == "not_applicable", name
        assert all(_is_said(key, quantity.value) for key, quantity in verdict.evidence.items()), verdict
    return found


def _is_said(name: str, value: object) -> bool:
    """Whether a figure is one: a loss alone may be NaN."""
    return "loss" in name or not isinstance(value, float) or not math.isnan(value)


def accused(found: dict[str, Verdict]) -> set[str]:
    return {name for name, verdict in found.items() if verdict.status == "found"}


def raised(found: dict[str, Verdict]) -> list[str]:
    """Answers that a detector did not give itself: it raised, and the asking said so."""
    return [f"{name}: {verdict.cause}" for name, verdict in found.items() if verdict.reason.endswith("-not-go-together")]


@each_kind
def test_the_records_that_are_changed_here_are_sound(kind):
    assert not raised(answers(kinds()[kind]))


@each_kind
@pytest.mark.parametrize("shape", list(SHAPES))
def test_a_record_without_some_of_its_parts_gets_an_answer_to_each_question(kind, shape):
    answers(everywhere(kinds()[kind], SHAPES[shape]))


@each_kind
def test_a_fact_that_is_nonsense_costs_no_other_question_and_accuses_nobody(kind):
    sound = kinds()[kind]
    before = answers(sound)
    for name, value, record in with_facts(sound):
        if fact_misfit(name, value):
            found = answers(record)
            assert not raised(found), (name, value)
            assert accused(found) <= accused(before), (name, value)


@each_kind
def test_a_fact_that_can_be_and_is_odd_gets_an_answer_to_each_question(kind):
    for name, value, record in with_facts(kinds()[kind]):
        if not fact_misfit(name, value):
            answers(record)


@each_kind
def test_scalars_that_are_no_numbers_and_counts_that_cannot_be_get_an_answer_to_each_question(kind):
    for changed in (with_scalars, with_counts):
        for _name, _value, record in changed(kinds()[kind]):
            answers(record)
