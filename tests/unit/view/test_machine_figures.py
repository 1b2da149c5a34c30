"""The machine's figures and tables, by what is in them."""

import itertools

import msgspec
import numpy as np
import pytest

from labkit.bench import labs_here
from labkit.detect.survey.baseline import baseline_of
from labkit.detect.survey.repeats import link_fit
from labkit.errors import UsageError
from labkit.theory.ceilings import crossover_bytes
from labkit.view.figures import figure
from labkit.view.figures.machine import bandwidths, link, repeats, roofline
from labkit.view.survey import baseline_card, labs_here_card, rows_of

from ..surveys import COPY, RATES, compute_run, link_run, survey

NAMES = ("roofline", "link", "bandwidths", "repeats")


@pytest.fixture
def record():
    return survey()


@pytest.fixture
def other():
    found = survey(4)
    return msgspec.structs.replace(found, provenance=msgspec.structs.replace(found.provenance, seed=7))


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_prints_its_provenance_and_says_in_words_what_it_shows(name, record, other):
    picture = figure(name)(record, other)
    for label in (record.provenance.label(), other.provenance.label()):
        assert any(label in text.get_text() for text in picture.figure.texts) and label in picture.alt
    assert "ranks 2" in picture.alt and "ranks 4" in picture.alt
    assert picture.png().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_of_nothing_or_of_another_lab_is_refused(name, broken):
    with pytest.raises(UsageError, match="at least one record"):
        figure(name)()
    with pytest.raises(UsageError):
        figure(name)(msgspec.structs.replace(broken, runs={"link": link_run(1)}))


def test_the_roof_of_each_dtype_bends_at_its_ridge_and_kernels_lie_at_their_intensity(record):
    axis = roofline(record).figure.axes[0]
    ridges = {round(line.get_xdata()[0], 6) for line in axis.lines if line.get_marker() == "v"}
    assert ridges == {round(rate / COPY, 6) for rate in RATES.values()}
    kernels = {text.get_text(): text.xy for text in axis.texts if hasattr(text, "xy")}
    assert kernels["matvec"] == (0.5, pytest.approx(COPY / 2 / 1e9))
    assert {text.get_text() for text in axis.texts} >= {"fp32 200", "bf16 50", "fp16 1"}
    roofs = [line for line in axis.lines if len(line.get_xdata()) > 10]
    assert max(line.get_ydata().max() for line in roofs) == pytest.approx(200)


def test_labels_of_roofs_that_lie_close_together_stand_apart():
    close = survey(compute=compute_run({"fp32": 200e9, "bf16": 205e9, "fp16": 190e9}))
    axis = roofline(close).figure.axes[0]
    heights = sorted(text.get_position()[1] for text in axis.texts if text.get_text()[:4] in ("fp32", "bf16", "fp16"))
    assert len(heights) == 3 and all(high / low > 1.4 for low, high in itertools.pairwise(heights))


def test_the_link_shows_points_line_the_rate_that_they_reach_and_the_crossover(record):
    left, right = link(record).figure.axes
    fit = link_fit(record)
    curves = [np.asarray(c.get_ydata()) for c in left.get_lines() if len(c.get_xdata()) == len(fit.sizes)]
    assert any(np.allclose(curve, fit.measured_s * 1e3) for curve in curves)
    assert any(np.allclose(curve, fit.predicted_s * 1e3) for curve in curves)
    sent = 2 * (fit.world_size - 1) / fit.world_size * fit.sizes
    assert np.allclose(right.lines[0].get_ydata(), sent / fit.measured_s / 1e9)
    assert np.allclose(right.lines[2].get_ydata(), fit.bytes_per_s / 1e9), "what no message gets beyond"
    at = crossover_bytes(2, fit.alpha_s, fit.bytes_per_s)
    assert any(np.allclose(c.get_xdata(), at) for c in left.get_lines() if c.get_linestyle() == ":")
    assert left.collections, "the band of the largest residual"


def test_bandwidths_and_waits_stand_apart_with_their_units(record):
    left, right = bandwidths(record).figure.axes
    assert (left.get_xlabel(), right.get_xlabel()) == ("GB/s", "ms")
    assert left.lines[0].get_xdata()[0] == pytest.approx(COPY / 1e9)
    assert [t.get_text() for t in right.get_yticklabels()] == ["link, a step (α)", "storage, a read", "launch of ranks"]


def test_repeats_are_drawn_beside_the_best_of_their_kind(record):
    axis = repeats(record).figure.axes[0]
    labels = [t.get_text() for t in axis.get_yticklabels()]
    assert labels[0] == "matmul-fp32" and "all-reduce, 1 KiB" in labels and "launch" in labels
    dots = next(line for line in axis.lines if line.get_marker() == "o")
    assert np.allclose(dots.get_xdata(), [1, 1.1, 1.2])


# Tables


def test_the_table_has_a_row_a_measure_with_spread_and_how_and_says_what_is_missing():
    rows = {row[0]: row for row in rows_of(baseline_of(survey()))}
    assert rows["matmul fp32"][1:4] == ("200", "GFLOP/s", "9%") and "1024³" in rows["matmul fp32"][4]
    alone = {row[0]: row for row in rows_of(baseline_of(survey(1)))}
    assert alone["link latency"][1] == "–" and "--ranks 2" in alone["link latency"][4]


def test_a_baseline_shows_itself_as_a_card_and_as_text():
    baseline = baseline_of(survey())
    assert "GFLOP/s" in baseline_card(baseline) and "measured 2025-01-02" in baseline._repr_html_()
    assert "matmul_fp32" in repr(baseline) and "measured 2025-01-02" in repr(baseline)


def test_the_labs_here_follow_from_the_specs_and_the_machine():
    small, large, gpus = labs_here(cores=2, num_gpus=0), labs_here(cores=64, num_gpus=0), labs_here(cores=64, num_gpus=8)
    rows = {row.slug: row for row in small.rows}
    assert rows["duplicate-data"].runs == "measured; times show order, not speed"
    assert rows["start-here"].runs == "measured" and "tf32 products" in rows["start-here"].needs_gpu
    assert {row.runs for row in large.rows} == {"measured"}
    assert all(row.needs_gpu == () for row in gpus.rows) and any(row.simulated for row in gpus.rows)
    assert "a machine of 2 cores, no GPU" in repr(small) and "8 GPUs" in repr(gpus)
    assert "duplicate-data" in labs_here_card(small) == small._repr_html_()
    with pytest.raises(UsageError, match="given 0"):
        labs_here(cores=0)
