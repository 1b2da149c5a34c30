"""The figures of utilisation, by what is in them."""

import msgspec
import pytest

from labkit.detect.utilisation.measures import flops_by_convention, utilisation
from labkit.errors import UsageError
from labkit.view.figures import figure

from ..builders import record_of
from ..detect.test_mfu_detectors import record as mfu_record
from ..detect.test_mfu_detectors import run_of


@pytest.fixture
def slow():
    return mfu_record(0.10, cpu_s=0.9)


@pytest.fixture
def fast():
    import msgspec

    return msgspec.structs.replace(mfu_record(0.50), variant="fixed")


def bars(axis, container=0):
    return [bar.get_width() for bar in axis.containers[container]]


@pytest.mark.parametrize("name", ["ladder", "flops", "published"])
def test_every_figure_prints_its_provenance_and_says_in_words_what_it_shows(name, slow, fast):
    picture = figure(name)(slow, fast)
    label = slow.provenance.label()
    assert any(label in text.get_text() for text in picture.figure.texts)
    assert label in picture.alt and "fixed" in picture.alt
    assert picture.png().startswith(b"\x89PNG")


def test_the_ladder_puts_useful_beside_busy(slow, fast):
    left, right = figure("ladder")(slow, fast).figure.axes
    containers = [c for c in left.containers if hasattr(c, "patches")]
    useful, busy = ([bar.get_width() for bar in c.patches] for c in containers)
    assert useful == pytest.approx([utilisation(slow), utilisation(fast)])
    assert busy == pytest.approx([0.9, 1.0])
    assert bars(right) == pytest.approx([100, 100])


def test_the_conventions_are_drawn_with_their_flops(slow):
    (axis,) = figure("flops")(slow).figure.axes
    assert [f"{width * 1e6:.0f}" for width in bars(axis)] == [
        f"{value:.0f}"
        for value in (flops_by_convention(slow.run)[k] for k in ("6n", "causal", "attention", "counted", "executed"))
    ]


def test_published_points_say_that_they_are_quoted_and_the_own_ones_that_they_are_measured(slow):
    (axis,) = figure("published")(slow).figure.axes
    labels = axis.get_legend_handles_labels()[1]
    assert labels[1] == "this machine, of its measured ceiling"
    assert labels[0] == "published (quoted): 391 points on 7 devices, 11% of them under 30 %"
    assert len(axis.collections[-1].get_offsets()) == 1
    points = sum(len(c.get_offsets()) for c in axis.collections if len(c.get_offsets()) > 1)
    assert points >= 150


def test_a_record_without_a_ceiling_is_refused_with_what_to_run():
    with pytest.raises(UsageError, match="no measured ceiling.*through the lab mfu"):
        figure("ladder")(record_of(run_of([1.0, 1.0])))


def test_rungs_of_one_variant_are_named_by_what_differs(slow):
    larger = msgspec.structs.replace(slow, config={**slow.config, "batch": 4})
    left, _ = figure("ladder")(msgspec.structs.replace(slow, config={**slow.config, "batch": 1}), larger).figure.axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["batch 1", "batch 4"]
