"""Figures in a dark theme: what marks them, and where the rule stands."""

import labkit.view.lesson
from labkit import labs
from labkit.facade import Lab
from labkit.view import dark, lesson
from labkit.view.figures import figure
from labkit.view.reading_page import page
from labkit.view.widgets import Panel


def test_a_figure_carries_the_mark_by_which_a_page_knows_it(broken):
    _, metadata = figure("who-read-what")(broken)._repr_mimebundle_()
    assert metadata["needs_background"] == "light"
    assert "img.jp-needs-light-background" in dark.RULE and dark.TURNED in dark.RULE


def test_a_lesson_brings_the_rule_where_somebody_looks_and_stores_none_where_nobody_does(monkeypatch):
    banner = lesson.begin(Lab(labs.spec("duplicate-data")), {}, known=())
    assert "<style" not in banner._repr_html_()
    monkeypatch.setattr(labkit.view.lesson, "is_live", lambda: True)
    assert banner._repr_html_().endswith(dark.style())


def test_the_panel_s_figure_and_a_page_of_a_reading_follow_too(broken):
    panel = Panel(Lab(labs.spec("duplicate-data")))
    assert dark.FIGURE in panel._image._dom_classes and dark.style() in panel.widget.children[0].value
    made = page(broken, labs_verdicts(broken), {}, (), (), {"who-read-what": lambda: figure("who-read-what")(broken)})
    assert dark.PAGE_RULE in made.html and "prefers-color-scheme:dark" in dark.PAGE_RULE


def labs_verdicts(record):
    return Lab(labs.spec("duplicate-data")).judge(record)
