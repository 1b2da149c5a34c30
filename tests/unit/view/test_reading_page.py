"""A reading as one page: everything in it, nothing loaded, text as text."""

import re

import msgspec

from labkit.errors import UsageError
from labkit.reading import reading_of
from labkit.record.quantity import Quantity
from labkit.view.reading_page import page

HOSTILE = '<script>alert(1)</script>\x1b[31m" onload=x'


def made(record, **figures):
    reading = reading_of(record)
    return page(reading, reading.verdicts, reading.measures, reading.main_measures, reading.tables, figures)


def test_answers_measures_and_figures_stand_in_one_file(broken):
    reading = reading_of(broken)
    html = made(broken, loss=lambda: reading.figure("loss")).html
    assert all(verdict.question in html for verdict in reading.verdicts)
    assert all(f"<code>{name}</code>" in html for name in reading.measures)
    assert html.count("data:image/png;base64,") == 1 and f'alt="{reading.figure("loss").alt[:20]}' in html
    assert broken.provenance.label() in html


def test_it_loads_nothing(broken):
    html = made(broken).html
    assert "default-src 'none'" in html and "<script" not in html and "<link" not in html and "@import" not in html
    assert not re.search(r"(?:src|href|url)\s*[=(]\s*['\"]?(?!data:)(?:\w+:)?//", html)


def test_text_of_a_record_is_shown_as_text(broken):
    named = msgspec.structs.replace(broken, variant=HOSTILE, config={HOSTILE: HOSTILE})
    reading = reading_of(named)
    html = page(named, reading.verdicts, {HOSTILE: Quantity(HOSTILE)}, [HOSTILE], [], {}).html
    assert "<script>" not in html and "\x1b" not in html and '" onload' not in html and "&lt;script&gt;" in html


def test_a_figure_that_cannot_be_drawn_is_named_and_left_out(broken):
    def refused():
        raise UsageError("it has no scan; run with scan=2")

    found = made(broken, scan=refused)
    assert found.not_drawn == ["scan: it has no scan; run with scan=2"] and "data:image" not in found.html
