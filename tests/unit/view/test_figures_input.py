"""The figures of an input pipeline, by what is in them."""

import msgspec
import pytest

from labkit.errors import UsageError
from labkit.record.schema import Storage
from labkit.view.figures import figure

from ..input_runs import queue, record, steady

STORAGE = Storage(rate_bits_per_s=8e6, way="root", achieved_bits_per_s=7.9e6)


def named(found, variant):
    return msgspec.structs.replace(found, variant=variant)


@pytest.fixture
def starved():
    return record(steady(75, 25, ranks=2), dummy=steady(0.1, 25, ranks=2), alone=steady(75, 25))


@pytest.fixture
def fed():
    return named(record(steady(1, 25, ranks=2), dummy=steady(0.1, 25, ranks=2), alone=steady(1, 25)), "fixed")


def reading(ranks):
    run, alone = steady(10 * ranks, 5, ranks=ranks, store_bytes=10_000), steady(10, 5, store_bytes=10_000)
    return record(run, storage=STORAGE, alone=alone)


@pytest.mark.parametrize("name", ["saw-tooth", "data-beside-compute", "speed-up"])
def test_every_figure_prints_its_provenance_and_says_in_words_what_it_shows(name, starved, fed):
    for given in ((starved,), (starved, fed)):
        picture = figure(name)(*given)
        label = starved.provenance.label()
        assert any(label in text.get_text() for text in picture.figure.texts)
        assert label in picture.alt and given[-1].variant in picture.alt
        assert picture.png().startswith(b"\x89PNG")


def test_the_saw_tooth_has_a_row_for_each_rank_and_a_title_with_the_share_of_waiting(starved, fed):
    left, right = figure("saw-tooth")(starved, fed).figure.axes
    assert [t.get_text() for t in left.get_yticklabels()] == ["rank 0", "rank 1"]
    assert "waits 75% of a step" in left.get_title("left") and "waits 4% of a step" in right.get_title("left")


def test_data_stand_beside_compute_and_the_rate_beside_that_of_one_ready_batch(starved, fed):
    left, right = figure("data-beside-compute")(starved, fed).figure.axes
    data, compute = ([bar.get_width() for bar in container.patches] for container in left.containers)
    assert data == pytest.approx([75, 1]) and compute == pytest.approx([25, 25])
    rates, ready = ([bar.get_width() for bar in container.patches] for container in right.containers)
    assert rates == pytest.approx([160, 16 / 0.026]) and ready == pytest.approx([16 / 0.0251] * 2)


def test_more_ranks_are_drawn_beside_what_theory_makes_of_the_share_measured_alone():
    records = [named(record(queue(20, 20, w), alone=steady(20, 20)), "locked") for w in (4, 2)]
    (axis,) = figure("speed-up")(*records).figure.axes
    lines = {line.get_label(): line for line in axis.get_lines()}
    assert list(lines["locked (measured)"].get_xdata()) == [2, 4]
    assert list(lines["locked (measured)"].get_ydata()) == pytest.approx([4 / 3, 1.6])
    curve = next(line for label, line in lines.items() if "simulated" in label)
    assert curve.get_ydata()[[1, 3]] == pytest.approx([4 / 3, 1.6]) and "f = 0.50" in curve.get_label()


def test_what_each_rank_gets_from_the_store_is_drawn_beside_its_share_of_the_rate():
    picture = figure("store-rate")(reading(2), reading(4))
    (axis,) = picture.figure.axes
    points = {int(line.get_xdata()[0]): line.get_ydata()[0] for line in axis.get_lines() if line.get_marker() == "o"}
    assert points == pytest.approx({1: 8.0, 2: 4.0, 4: 2.0})
    assert "a store at 8 Mbit/s (7.9 Mbit/s measured)" in picture.alt
    assert "R/W with R = 8 Mbit/s (simulated)" in axis.get_legend_handles_labels()[1]


def test_a_figure_that_lacks_what_it_draws_says_what_to_run(starved):
    lonely = record(steady(20, 20, ranks=2))
    with pytest.raises(UsageError, match="compare='all'"):
        figure("speed-up")(lonely)
    with pytest.raises(UsageError, match="draw the variant shared-store"):
        figure("store-rate")(starved)
    with pytest.raises(UsageError, match="run more steps"):
        figure("data-beside-compute")(record(steady(20, 20, steps=3)))
    with pytest.raises(UsageError, match="no steps"):
        empty = steady(1, 1).ranks[0]
        figure("saw-tooth")(record(msgspec.structs.replace(steady(1, 1), ranks=(msgspec.structs.replace(empty, steps=()),))))


def test_too_few_steps_are_told_from_a_run_that_is_missing_and_from_one_without_a_store():
    few = record(steady(1, 5, ranks=2, steps=3, store_bytes=10_000), storage=STORAGE, alone=steady(1, 5, steps=3))
    for name in ("speed-up", "store-rate"):
        with pytest.raises(UsageError, match="run more steps"):
            figure(name)(few)


def test_the_saw_tooth_draws_what_the_rank_does_to_the_millisecond(starved):
    axis = figure("saw-tooth")(starved).figure.axes[0]
    computes, waits = (collection.get_paths() for collection in axis.collections[:2])
    widths = (
        {round(path.get_extents().width, 6) for path in computes},
        {round(path.get_extents().width, 6) for path in waits},
    )
    assert widths == ({0.025}, {0.075})
