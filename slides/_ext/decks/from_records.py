"""Blocks that are drawn from records: figures, measures, tables, verdicts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from html import escape
from pathlib import Path

import yaml
from docutils import nodes
from docutils.parsers.rst import directives

from labkit.errors import UsageError
from labkit.view.cards import chip, sentence

from .base import DeckDirective, raw
from .examined import NAME as EXAMINED
from .examined import Examined
from .fitting import HEIGHT_PX, MARGIN_PX, PX_PER_INCH, SLIDE_PX, fit
from .provenance import provenance
from .records import Records


class LabRecords(DeckDirective):
    """Declares the deck's records: a mapping from names to the keywords of `Lab.run`."""

    def draw(self) -> list[nodes.Node]:
        self.env.current_document["deck_records"] = None  # until there are some
        try:
            plans = yaml.safe_load("\n".join(self.content)) or {}
        except yaml.YAMLError as error:
            raise UsageError(f"wants YAML, a name and its keywords each: {error}") from None
        if not isinstance(plans, dict) or not all(isinstance(plan, dict | None) for plan in plans.values()):
            raise UsageError("wants a mapping, as in `broken: {ranks: 2}`")
        config = self.config
        kept, of = Path(config.decks_records), self.argument()
        options = {"kept": kept, "quick": config.decks_quick, "fresh": config.decks_fresh}
        made = Examined(plans, **options) if of == EXAMINED else Records(of, plans, **options)
        self.env.current_document["deck_records"] = made
        return []


class LabFigure(DeckDirective):
    """One of the lab's figures, drawn at the size of the slide."""

    option_spec = {
        "records": directives.unchanged_required,
        "choices": directives.unchanged_required,
        "width": directives.positive_int,
        "height": directives.positive_int,
        "scale": directives.positive_int,
    }

    def draw(self) -> list[nodes.Node]:
        records = self.records
        choices = yaml.safe_load(self.options.get("choices", "")) or {}
        chosen = records.named(self.options.get("records"))
        picture = records.lab.figure(self.argument(), *chosen, **choices)
        width_px, height_px = self.options.get("width", SLIDE_PX[0] - 2 * MARGIN_PX), self.options.get("height", HEIGHT_PX)
        px_per_inch = PX_PER_INCH * self.options.get("scale", 100) / 100
        fit(picture, width_px=width_px, height_px=height_px, px_per_inch=px_per_inch)
        png = picture.png(dpi=2 * px_per_inch)  # two dots a pixel, for large projectors
        name = f"{Path(self.env.docname).name}-{self.argument()}-{hashlib.sha256(png).hexdigest()[:8]}.png"
        folder = Path(self.config.decks_out) / "_figures"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(png)
        image = f'<img src="_figures/{name}" alt="{escape(picture.alt, quote=True)}" style="width:{width_px}px">'
        return [raw(f'<p class="figure">{image}</p>'), provenance(chosen, printed=True)]


class LabMeasures(DeckDirective):
    """Measures, a row each, of records, a column each."""

    option_spec = {"records": directives.unchanged_required, "measures": directives.unchanged_required}

    def draw(self) -> list[nodes.Node]:
        chosen = self.records.named(self.options.get("records"))
        compared = self.records.lab.compare(*chosen)
        wanted = self.options.get("measures", "").replace(",", " ").split()
        known = list(dict.fromkeys(name for column in compared.columns.values() for name in column))
        missing = [name for name in wanted if name not in known]
        if missing:
            raise UsageError(f"no measure {missing[0]!r}; there are: {', '.join(known)}")
        rows = [
            (name.replace("_", " "), *(column[name].said if name in column else "–" for column in compared.columns.values()))
            for name in wanted or known
        ]
        return [raw(_table(("", *compared.columns), rows)), provenance(chosen)]


class LabTable(DeckDirective):
    """One of the lab's tables, found by the beginning of its title; some of its rows, some of its columns."""

    option_spec = {
        "record": directives.unchanged_required,
        "rows": directives.unchanged_required,
        "columns": directives.unchanged_required,
    }

    def draw(self) -> list[nodes.Node]:
        record = self.records.record(self.options.get("record", next(iter(self.records.by_name))))
        tables = {table.title: table for table in self.records.lab.tables(record)}
        table = next((table for title, table in tables.items() if title.lower().startswith(self.argument().lower())), None)
        if table is None:
            raise UsageError(f"no table whose title begins with {self.argument()!r}; there are: {'; '.join(tables)}")
        columns = _chosen(self.options.get("columns"), table.columns, keep_first=True)
        rows = _chosen(self.options.get("rows"), [row[0] for row in table.rows])
        body = [[table.rows[row][column] for column in columns] for row in rows]
        label = record.provenance.label()  # stands at the foot of the slide
        notes = "".join(f'<p class="note">{escape(note)}</p>' for note in table.notes if note != label)
        return [raw(_table([table.columns[at] for at in columns], body) + notes), provenance([record])]


def _chosen(wanted: str | None, known: Iterable[str], *, keep_first: bool = False) -> list[int]:
    known = list(known)
    if not wanted:
        return list(range(len(known)))
    names = [name.strip() for name in wanted.split(",")]
    missing = [name for name in names if name not in known]
    if missing:
        raise UsageError(f"no {missing[0]!r}; there are: {', '.join(known)}")
    return [0] * keep_first + [known.index(name) for name in names]


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    def row(cells: Iterable[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return f'<table class="measures">{row(head, "th")}{"".join(row(cells, "td") for cells in rows)}</table>'


class LabVerdict(DeckDirective):
    """What one detector says of a record: status, cause, fix, waste, and the evidence that is asked for."""

    option_spec = {"record": directives.unchanged_required, "evidence": directives.unchanged}

    def draw(self) -> list[nodes.Node]:
        record = self.records.record(self.options.get("record", next(iter(self.records.by_name))))
        verdicts = {verdict.detector: verdict for verdict in self.records.lab.judge(record)}
        if self.argument() not in verdicts:
            raise UsageError(
                f"no verdict of {self.argument()!r} on {record.lab or record.variant}; there are: {', '.join(verdicts)}"
            )
        verdict = verdicts[self.argument()]
        lines = [f"{chip(verdict.status)} <strong>{escape(verdict.question)}</strong>", escape(sentence(verdict.cause))]
        if verdict.fix and verdict.status != "clear":
            lines.append(f"<strong>Fix:</strong> {escape(sentence(verdict.fix))}")
        if verdict.waste is not None:
            lines.append(f"<strong>Waste:</strong> {verdict.waste:.0%} of device time")
        for name in self.options.get("evidence", "").replace(",", " ").split():
            if name not in verdict.evidence:
                raise UsageError(f"no evidence {name!r} in {verdict.detector}; there is: {', '.join(verdict.evidence)}")
            lines.append(f"{escape(name.replace('_', ' '))}: {escape(verdict.evidence[name].said)}")
        body = "".join(f"<p>{line}</p>" for line in lines if line)
        return [raw(f'<div class="verdict {verdict.status}">{body}</div>'), provenance([record])]
