"""Every detector over a real record of every variant of every lab: what must be found is, and nobody else is accused."""

from __future__ import annotations

import pytest
from shared_records import shared_record
from verdict_matrix import ANY_PROGRAM, EACH, MATRIX, TIMED, here, offences, own_faults

import labkit
from labkit import detect, labs
from labkit.detect.verdict import Verdict
from labkit.record.load import heaviest
from labkit.record.unknown_names import unknown_names

TRIES = 3
"""How often a fault that shows in times is made again where other programs hid it."""


def by_lab(cases):
    """A test for each of these variants; the name of their lab, as lessons have it, keeps those of a lab in one worker."""
    names = {spec.slug: f"{spec.number:02d}_{spec.slug.replace('-', '_')}" for spec in labs.specs()}
    return pytest.mark.parametrize(("slug", "variant"), cases, ids=[f"{names[slug]}-{variant}" for slug, variant in cases])


each = by_lab(EACH)


def record_of(root, slug: str, variant: str, seed: int = 0):
    rows = MATRIX[slug]
    how = {"device": "cpu", "deadline_s": 90, "seed": seed} | rows.how | here(rows.rows[variant]).how
    return shared_record(root, labkit.lab(slug), None if variant == "survey" else variant, how)


# The table is whole


def test_each_variant_of_each_lab_has_a_row():
    expected = {spec.slug: {variant.name for variant in spec.variants} or {"survey"} for spec in labs.specs()}
    assert {slug: set(rows.rows) for slug, rows in MATRIX.items()} == expected


def test_each_detector_is_asked_by_a_lab_and_one_that_answers_for_any_program_is_named_by_a_lab_that_asks_it():
    of_labs = {name for name in detect.names() if not detect.is_of_the_doctor(name)}
    assert {name for spec in labs.specs() for name in spec.detectors} == of_labs >= ANY_PROGRAM
    assert all(set(case.any_program) <= set(labs.spec(slug).detectors) for slug, case in MATRIX.items())


def test_cells_name_detectors_and_times_are_judged_by_the_detectors_that_labs_say():
    cells = {name for rows in MATRIX.values() for row in rows.rows.values() for name in row.cells}
    assert cells <= set(detect.names()) >= TIMED
    assert {name for spec in labs.specs() for name in spec.timed_detectors} <= TIMED


@each
def test_each_variant_has_a_fault_that_its_own_detectors_find_or_a_reason_why_not(slug, variant):
    assert bool(own_faults(slug, variant)) != bool(MATRIX[slug].rows[variant].no_fault)


def test_fixed_has_no_fault_and_broken_has():
    for slug, rows in MATRIX.items():
        if "fixed" in rows.rows:
            assert rows.rows["fixed"].no_fault and own_faults(slug, "broken")


# Records keep to it


@pytest.mark.ranks
@pytest.mark.timeout(240)
@each
def test_every_detector_says_of_a_variant_what_the_table_allows(records_of_the_session, slug, variant):
    record = record_of(records_of_the_session, slug, variant)
    verdicts = [detect.ask(name, record) for name in detect.names()]
    assert not offences(slug, variant, verdicts)
    assert not unknown_names(record)


@pytest.mark.ranks
@pytest.mark.timeout(400)
@by_lab([case for case in EACH if own_faults(*case)])
def test_each_variants_own_fault_is_found(records_of_the_session, slug, variant):
    """A fault that shows in times may be hidden by what else runs here: then it is made again.

    Where other programs take the cores each time, which the record says, it may be left open, and is not denied.
    """
    left = set(own_faults(slug, variant))
    hindered, said = True, {}
    for seed in range(TRIES):
        record = record_of(records_of_the_session, slug, variant, seed)
        said = {name: detect.ask(name, record).status for name in left}
        left = {name for name in left if said[name] != "found"}
        load = heaviest([run.load for run in record.runs.values()])
        hindered = hindered and load is not None and load.matters
        if not left or not left <= TIMED:
            break
    assert not left or (hindered and left <= TIMED and {said[name] for name in left} == {"inconclusive"})


def test_the_table_can_be_broken():
    def said(detector, status):
        return Verdict(detector=detector, question="?", status=status)

    assert not offences("duplicate-data", "broken", [said("rank-duplicates", "found"), said("order", "inconclusive")])
    assert offences("duplicate-data", "broken", [said("rank-duplicates", "clear")])
    assert offences("duplicate-data", "fixed", [said("rank-duplicates", "inconclusive")])
    assert offences("duplicate-data", "fixed", [said("straggler", "found")])
    assert offences("mfu", "fixed", [said("wrong-stage", "clear")])  # a question that no record of this lab can answer
    assert not offences("mfu", "broken", [said("utilisation", "inconclusive")])  # times, on a busy machine
    assert offences("mfu", "broken", [said("utilisation", "clear")])
