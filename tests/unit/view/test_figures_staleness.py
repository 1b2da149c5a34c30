"""The figures of asynchronous training, by what is in them."""

import msgspec
import pytest
from matplotlib.collections import LineCollection

from labkit.errors import UsageError
from labkit.labs import stale_gradients
from labkit.view.figures import figure, figures_of
from labkit.view.figures.staleness import loss_both_ways, stability_chart, staleness, who_computed_on_what

from ..builders import in_batches, record_of, run_of
from ..detect.staleness_readings import ROUND, beside_sync, curvature, falling, in_step, served
from .long_names import with_long_names

MINE = list(figures_of("staleness"))
FACTS = {"lr": 0.2, "momentum": 0.9, "sharpness": 5.0}


@pytest.fixture
def broken():
    return beside_sync(served(ROUND * 25, [2.3] * 100, **FACTS), in_step(falling(25), events=[curvature(4.0)]))


@pytest.fixture
def fixed():
    return msgspec.structs.replace(beside_sync(in_step(falling(25), role="variant", **FACTS)), variant="fixed")


def test_the_lab_names_all_of_them():
    assert set(stale_gradients.SPEC.figures) == set(MINE)


@pytest.mark.parametrize("name", MINE)
def test_every_figure_prints_its_provenance_and_says_in_words_what_it_shows(name, broken, fixed):
    picture = figure(name)(broken, fixed)
    label = broken.provenance.label()
    assert any(label in text.get_text() for text in picture.figure.texts)
    assert label in picture.alt and "broken" in picture.alt and "fixed" in picture.alt
    assert picture.png().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", MINE)
def test_a_record_without_versions_is_refused_by_name(name):
    with pytest.raises(UsageError, match="broken|versions"):
        figure(name)(record_of(run_of([[in_batches(list(range(8)), 4)]])))


def test_an_arrow_goes_from_the_version_pulled_to_the_version_pushed_and_a_dot_is_fresh(broken, fixed):
    left, right = who_computed_on_what(broken, fixed).figure.axes
    rows = [
        line
        for collection in left.collections
        if isinstance(collection, LineCollection)
        for line in collection.get_segments()
    ]
    assert len(rows) == 39  # 40 updates are drawn, and the very first gradient is fresh
    second = [segment for segment in rows if segment[0][1] == 1][1]
    assert second[:, 0].tolist() == pytest.approx([2.1, 4.75])
    assert not any(len(c.get_segments()) for c in right.collections if isinstance(c, LineCollection))
    assert len([line for line in right.lines if line.get_marker() == "o"]) == 25 * 4
    assert [text.get_text() for text in left.get_yticklabels()] == ["rank 0", "rank 1", "rank 2", "rank 3"]


def test_fewer_versions_can_be_asked_for_and_the_axis_says_how_many_are_drawn(broken, fixed):
    picture = who_computed_on_what(fixed, versions=20)
    (axis,) = picture.figure.axes
    assert len([line for line in axis.lines if line.get_marker() == "o"]) == 20 * 4
    assert "the first 20 of 25 updates" in axis.get_xlabel() and "the first 20 of 25 updates" in picture.alt
    left, right = who_computed_on_what(broken, fixed).figure.axes
    assert "the first 40 of 100 updates" in left.get_xlabel() and "all 25 updates" in right.get_xlabel()


def test_the_histogram_has_a_row_a_worker_with_the_mean_of_its_own():
    picture = staleness(beside_sync(served([0, 1, 0, 1, 0, 1, 2, 0, 1, 2])))
    (axis,) = picture.figure.axes
    assert [text.get_text() for text in axis.texts] == [
        "mean 1.00\n4 gradients", "mean 1.25\n4 gradients", "mean 4.00\n2 gradients",
    ]  # fmt: skip
    heights = [bar.get_height() for bar in axis.patches]
    assert sum(heights) == pytest.approx(-3 * 0.78)


def test_loss_against_samples_and_time_are_side_by_side_with_the_synchronous_run(broken, fixed):
    left, right = loss_both_ways(broken).figure.axes
    assert [line.get_label().partition(":")[0] for line in left.lines] == ["broken", "broken, made synchronous"]
    assert left.lines[0].get_xdata()[-1] == left.lines[1].get_xdata()[-1] == 800
    assert left.get_yscale() == right.get_yscale() == "log"
    assert len(loss_both_ways(broken, fixed, fixed).figure.axes[0].lines) == 3


def test_a_loss_that_is_no_number_is_left_out_of_the_limits():
    picture = loss_both_ways(beside_sync(served(ROUND * 5, [2.0] * 10 + [float("nan")] * 10)))
    assert picture.png() and "nan" in picture.alt


def test_the_chart_places_a_record_at_its_delay_and_draws_the_line_of_its_momentum(broken, fixed):
    axis = stability_chart(broken, fixed).figure.axes[0]
    placed = {line.get_label(): line.get_xydata()[0].tolist() for line in axis.lines if "_" not in line.get_label()}
    assert placed == {"broken": [3, 1.0], "fixed": [0, 1.0]}
    words = [text.get_text() for text in axis.texts]
    assert words == ["momentum 0", "momentum 0.5", "momentum 0.9"] and "simulated" in axis.get_title(loc="left")


@pytest.mark.parametrize("name", MINE)
def test_four_records_with_long_names_leave_a_figure_that_can_be_read(name, broken, fixed):
    figure(name)(*with_long_names(broken, fixed))  # `laid_out` looks at each figure that is drawn here
