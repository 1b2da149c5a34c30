"""A reading as one page to send to a colleague: answers, measures, tables, figures, and where they come from."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..detect.meanings import meaning_of
from ..detect.verdict import Verdicts
from ..errors import RecordError, UsageError
from ..record.quantity import Quantity
from ..record.schema import Record
from ..record.table import Table
from .cards import escape, record_card, verdicts_card
from .dark import PAGE_RULE
from .page_style import STYLE
from .picture import Picture
from .tables import table_card

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_OWN_STYLE = (
    "html,body{margin:0;padding:0}body.lkd{max-width:none}main{margin:0 auto;max-width:62rem;padding:1.5rem 1.25rem 3rem}"
    "figure img{display:block;width:100%;height:auto;background:#fff}.lkd figcaption{border:0}"
)


@dataclass(frozen=True)
class Page:
    """A page, and which figures are not in it and why."""

    html: str
    not_drawn: list[str]


def page(
    record: Record,
    verdicts: Verdicts,
    measures: Mapping[str, Quantity],
    main: Sequence[str],
    tables: Sequence[Table],
    figures: Mapping[str, Callable[[], Picture]],
) -> Page:
    """One file with everything in it, which loads nothing; text of the record stands in it as text.

    Args:
        main: names of the measures that a person reads first; the others are folded.
        figures: by name what draws each.
    """
    pictures, not_drawn = _drawn(figures)
    title = escape(f"labkit: {record.title}")
    body = "".join(
        [
            f"<header><p class=kicker>labkit</p><h1 class=title>{escape(record.title)}</h1></header>",
            record_card(record),
            _section("What was found", verdicts_card(verdicts)),
            _section("Measures", _measures(measures, main)),
            *([_section("Tables", "".join(map(table_card, tables)))] if tables else []),
            *([_section("Figures", "".join(pictures))] if pictures else []),
            f"<footer>{escape(record.provenance.label())}<br>This page loads nothing and sends nothing.</footer>",
        ]
    )
    html = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f"<style>{STYLE}{_OWN_STYLE}{PAGE_RULE}</style></head><body class='lkd'><main>{body}</main></body></html>\n"
    )
    return Page(html, not_drawn)


def _section(title: str, body: str) -> str:
    return f"<section><h2>{title}</h2>{body}</section>"


def _measures(measures: Mapping[str, Quantity], main: Sequence[str]) -> str:
    others = [name for name in measures if name not in main]
    folded = f"<details><summary>{len(others)} more</summary>{_table(measures, others)}</details>" if others else ""
    return _table(measures, [name for name in main if name in measures]) + folded


def _table(measures: Mapping[str, Quantity], names: Iterable[str]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(measures[name].said)}</td>"
        f"<td class=soft>{escape(meaning_of(name))}</td></tr>"
        for name in names
    )
    head = "<thead><tr><th scope=col>Measure</th><th scope=col>Value</th><th scope=col>What it is</th></tr></thead>"
    return f"<table>{head}<tbody>{rows}</tbody></table>" if rows else ""


def _drawn(figures: Mapping[str, Callable[[], Picture]]) -> tuple[list[str], list[str]]:
    """The figures as HTML, and why others are not drawn."""
    found, refused = [], []
    for name, draw in figures.items():
        try:
            picture = draw()
        except (UsageError, RecordError) as error:  # a record need not hold what every figure shows
            refused.append(f"{name}: {error}")
            continue
        data, said = base64.b64encode(picture.png()).decode(), escape(picture.alt)
        image = f'<img alt="{said}" src="data:image/png;base64,{data}">'
        found.append(f"<figure>{image}<figcaption>{escape(name.replace('-', ' '))}</figcaption></figure>")
    return found, refused
