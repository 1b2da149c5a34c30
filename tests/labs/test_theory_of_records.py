"""Each lab has a panel of its theory, and a real record's point lies on it, labelled measured."""

import math

import pytest
from shared_records import shared_record
from verdict_matrix import MATRIX, here

import labkit
from labkit import labs

pytestmark = pytest.mark.ranks

WITH_A_POINT = {
    "start-here": "survey",
    "precision": "broken",
    "mfu": "broken",
    "duplicate-data": "fixed",
    "stale-gradients": "broken",
    "overlap": "fixed",
    "zero-stages": "fixed",
    "input-pipeline": "workers",
    "crash-recovery": "fixed",
}
"""A variant of each lab whose record has all that the panel asks for."""


def record_of(root, slug, variant):
    rows = MATRIX[slug]
    how = {"device": "cpu", "deadline_s": 90, "seed": 0} | rows.how | here(rows.rows[variant]).how
    return shared_record(root, labkit.lab(slug), None if variant == "survey" else variant, how)


def test_each_lab_is_among_them():
    assert set(WITH_A_POINT) == {spec.slug for spec in labs.specs()}


@pytest.mark.parametrize("slug", WITH_A_POINT)
def test_a_record_s_point_lies_on_the_panel_with_its_source(slug, records_of_the_session):
    lab, record = labkit.lab(slug), record_of(records_of_the_session, slug, WITH_A_POINT[slug])
    panel = lab.theory(record).panel
    assert panel.measured is not None, "the record says too little"
    sources = {point.provenance for _, point in panel.measured.points}
    assert sources <= {record.provenance.source, record.link_source} and "simulated" not in lab.theory().panel.source
    for chart, point in panel.measured.points:
        assert point in panel.shown().charts[chart].points
        assert math.isfinite(point.x) and math.isfinite(point.y)
    assert f"({record.provenance.source})" in repr(lab.theory(record))
    if slug in MEASURE:
        name, factor = MEASURE[slug]
        assert panel.measured.points[-1][1].y == pytest.approx(float(lab.measures(record)[name].value) * factor, rel=1e-6)


MEASURE = {"mfu": ("mfu_attention", 1.0), "crash-recovery": ("goodput", 1.0)}
"""Where a measure of the lab is what the point shows: its name, and what its unit is multiplied by."""


def test_what_rank_0_has_seen_of_data_dealt_anew_follows_the_curve(records_of_the_session):
    record = record_of(records_of_the_session, "duplicate-data", "fixed")
    panel = labkit.lab("duplicate-data").theory(record).panel
    ranks = record.run.world_size
    for epoch, (_, point) in enumerate(panel.measured.points, start=1):
        assert point.x == epoch and point.y == pytest.approx(1 - (1 - 1 / ranks) ** epoch, abs=0.06)


def test_a_record_that_says_too_little_leaves_the_curves_alone(records_of_the_session):
    lab = labkit.lab("crash-recovery")
    record = record_of(records_of_the_session, "crash-recovery", "broken")  # it saves nothing
    assert lab.theory(record).panel == lab.theory().panel
