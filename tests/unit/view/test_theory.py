"""A panel as it is stored and as it moves: the words say what is drawn, and a page's places become settings."""

import xml.etree.ElementTree as ET

import pytest

import labkit
from labkit import labs
from labkit.errors import UnknownName, UsageError
from labkit.labs.spec import LabSpec
from labkit.theory.panel import Axis, Chart, Curve, Point
from labkit.view.charts import to_sketch
from labkit.view.moving import settings_of, stop_said
from labkit.view.sketch import Line, Mark, Words
from labkit.view.svg import DARK, LIGHT, to_svg
from labkit.view.theory import TheoryPanel
from labkit.view.ticks import said, ticks

SPECS = {spec.slug: spec for spec in labs.specs()}


def panel_of(slug) -> TheoryPanel:
    spec: LabSpec = SPECS[slug]
    assert spec.theory is not None
    return TheoryPanel(spec.theory(None))


@pytest.mark.parametrize("slug", SPECS)
def test_each_lab_has_a_panel_whose_stored_output_has_text_with_numbers_units_and_source(slug):
    panel = panel_of(slug)
    text = repr(panel)
    assert panel.title in text and "simulated" in text and panel.panel.source in text and panel.panel.shown().said in text
    for slider in panel.sliders:
        assert f"{slider.label}: {stop_said(slider, slider.value)}" in text
    for sketch in panel.at().sketches:
        drawn = ET.fromstring(to_svg(sketch))
        assert drawn.get("aria-label") == sketch.alt and sketch.alt in text


def test_the_stored_output_is_a_picture_with_words_beside_the_live_one():
    data, metadata = panel_of("duplicate-data")._repr_mimebundle_()
    assert data["image/png"].startswith(b"\x89PNG") and data["text/plain"] == metadata["image/png"]["alt"]
    assert "application/vnd.jupyter.widget-view+json" in data


def test_a_move_on_the_page_is_answered_with_pictures_of_it():
    panel = panel_of("duplicate-data")
    widget = panel.widget
    before = widget.shown
    widget.places = {**widget.places, "ranks": 0}
    assert widget.shown["said"] == panel.at({"ranks": 1}).said != before["said"]
    assert widget.shown["svgs"] != before["svgs"]
    assert [control["name"] for control in widget.controls] == ["ranks", "epochs"]
    ranks = panel.sliders[0]
    assert widget.controls[0]["stops"][widget.start["ranks"]] == stop_said(ranks, ranks.value) == "4"


def test_a_place_that_there_is_not_is_the_nearest():
    panel = panel_of("duplicate-data")
    assert settings_of(panel, {"ranks": 99, "epochs": -5, "else": 1}) == {"ranks": 1024, "epochs": 1}


def test_a_lab_says_which_sliders_there_are_and_which_values_they_take():
    lab = labkit.Lab(SPECS["duplicate-data"])
    assert lab.theory(ranks=8).panel.settings == {"ranks": 8, "epochs": 2}
    with pytest.raises(UnknownName, match="epochs"):
        lab.theory(epoch=3)
    with pytest.raises(UsageError):
        lab.theory(ranks=-1)
    with pytest.raises(UsageError, match="record"):
        lab.theory("last")


def chart(**fields) -> Chart:
    axes = {"x": Axis(label="size", unit="bytes", log=True), "y": Axis(label="time", unit="ms", low=0)}
    curve = Curve(label="a <line> & more", x=(1e3, 1e6), y=(1.0, 4.0))
    return Chart(**{"title": "t", "curves": (curve,), **axes, **fields})


def test_names_of_others_end_no_tag_and_words_of_the_axes_are_drawn():
    sketch = to_sketch(chart())
    drawn = [shape.text for shape in sketch.shapes if isinstance(shape, Words)]
    assert {"a <line> & more", "size, bytes", "time, ms", "1 kB", "1 MB"} <= set(drawn)
    assert "&lt;line&gt; &amp; more" in to_svg(sketch) and ET.fromstring(to_svg(sketch)) is not None


def test_a_measured_point_is_another_mark_and_lies_on_top():
    points = (Point(label="run", x=1e4, y=2.0, provenance="measured"), Point(label="here", x=1e4, y=2.0))
    marks = [shape for shape in to_sketch(chart(points=points)).shapes if isinstance(shape, Mark)]
    assert [mark.kind for mark in marks[-2:]] == ["circle", "diamond"] and not marks[-2].filled and marks[-1].filled
    assert "run (measured): 2 at 10 kB" in to_sketch(chart(points=points)).alt


def test_what_is_no_number_breaks_a_line():
    broken = Curve(label="c", x=(1.0, 2.0, 3.0, 4.0, 5.0), y=(1.0, 2.0, float("nan"), 2.0, 1.0))
    drawn = to_sketch(chart(x=Axis(label="x"), curves=(broken,)))
    assert (
        len([s for s in drawn.shapes if isinstance(s, Line) and s.width == 2.4 and len(s.points) == 2]) == 3
    )  # one in the legend


def test_a_larger_value_lies_higher_and_further_right():
    line = next(
        s
        for s in to_sketch(chart()).shapes
        if isinstance(s, Line) and s.width == 2.4 and s.points[0] != (0, 0) and s.points[0][1] > 60
    )
    (x0, y0), (x1, y1) = line.points
    assert x1 > x0 and y1 < y0


@pytest.mark.parametrize(
    ("axis", "low", "high", "words"),
    [
        (Axis(label="share", percent=True), 0, 1, ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]),
        (Axis(label="ranks", log=True), 1, 16, ["1", "2", "4", "8", "16"]),
        (Axis(label="n", unit="bytes", log=True), 1e3, 1e9, ["1 kB", "10 kB", "100 kB", "1 MB", "10 MB", "100 MB", "1 GB"]),
        (Axis(label="w", log=True), 1e-6, 1e6, ["10⁻⁶", "10⁻⁴", "0.01", "1", "100", "10,000", "10⁶"]),
        (Axis(label="stage", names=("a", "b")), -0.5, 1.5, ["a", "b"]),
    ],
)
def test_ticks_are_round_and_few(axis, low, high, words):
    assert [word for _, word in ticks(axis, low, high)] == words
    assert said(axis, 0.25) == ("25 %" if axis.percent else "0.25 B" if axis.unit == "bytes" else "0.25")


def brightness(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_words_and_lines_stand_out_from_the_ground(colours):
    ground = brightness(colours["ground"])
    for role, least in {"ink": 7, "soft": 4.5, "blue": 3, "orange": 3, "green": 3, "purple": 3, "red": 3}.items():
        light, dark = sorted((brightness(colours[role]), ground), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= least, role
