"""What a deck is written with, beside plain Markdown. Everything it shows of a run is read from a record.

lab-records SLUG      which records the deck is drawn from: YAML, a name each
lab-figure NAME       a figure of the lab, its provenance on it
lab-measures          measures of records side by side
lab-table TITLE       one of the lab's tables
lab-verdict DETECTOR  what a detector says of a record
lab-diff BEFORE AFTER the fix, as a difference of two sources
notes MINUTES         speaker notes, and how long the slide takes
expects               in notes: an answer to expect, and what to say to it
{measure}`record.measure` in a line of text; {measure}`a.x / b.x` is a ratio
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import re
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole
from sphinx_revealjs.nodes import revealjs_section

from labkit.errors import LabkitError, UsageError
from labkit.record.schema import Record
from labkit.view.cards import chip

from .fitting import PX_PER_INCH, SLIDE_PX, fit
from .records import Records

MARGIN_PX = 56
"""Free at the left and at the right of a slide, as deck.css has it."""

HEIGHT_PX = 570
"""Of a figure that has a slide to itself, below a title of one line."""


class DeckDirective(SphinxDirective):
    """A directive that reads records; what is wrong with it is an error of the build that names file and line."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        try:
            return self.draw()
        except (LabkitError, UsageError) as error:
            raise self.error(f"{self.name}: {error}") from None

    def draw(self) -> list[nodes.Node]:
        raise NotImplementedError

    @property
    def records(self) -> Records:
        return records_of(self.env)

    def argument(self) -> str:
        if not self.arguments:
            raise UsageError(f"{self.name} wants a name after it")
        return self.arguments[0].strip()


def records_of(env: Any) -> Records:
    if "deck_records" not in env.current_document:
        raise UsageError("the deck has declared no records yet; begin it with a lab-records block")
    return env.current_document["deck_records"]


class LabRecords(DeckDirective):
    """Declares the deck's records: a mapping from names to the keywords of `Lab.run`."""

    def draw(self) -> list[nodes.Node]:
        try:
            plans = yaml.safe_load("\n".join(self.content)) or {}
        except yaml.YAMLError as error:
            raise UsageError(f"wants YAML, a name and its keywords each: {error}") from None
        if not isinstance(plans, dict) or not all(isinstance(plan, dict | None) for plan in plans.values()):
            raise UsageError("wants a mapping, as in `broken: {ranks: 2}`")
        config = self.config
        self.env.current_document["deck_records"] = Records(
            self.argument(), plans, kept=Path(config.decks_records), quick=config.decks_quick, fresh=config.decks_fresh
        )
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
        return [_raw(f'<p class="figure">{image}</p>'), provenance(chosen, printed=True)]


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
            (name.replace("_", " "), *(_with_source(column.get(name)) for column in compared.columns.values()))
            for name in wanted or known
        ]
        return [_raw(_table(("", *compared.columns), rows)), provenance(chosen)]


def _with_source(quantity: Any) -> str:
    if quantity is None:
        return "–"
    return f"{quantity} ({quantity.source})" if quantity.source else str(quantity)


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
        return [_raw(_table([table.columns[at] for at in columns], body) + notes), provenance([record])]


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
            raise UsageError(f"no verdict of {self.argument()!r} on {record.lab}; there are: {', '.join(verdicts)}")
        verdict = verdicts[self.argument()]
        lines = [f"{chip(verdict.status)} <strong>{escape(verdict.question)}</strong>", escape(_sentence(verdict.cause))]
        if verdict.fix and verdict.status != "clear":
            lines.append(f"<strong>Fix:</strong> {escape(_sentence(verdict.fix))}")
        if verdict.waste is not None:
            lines.append(f"<strong>Waste:</strong> {verdict.waste:.0%} of device time")
        for name in self.options.get("evidence", "").replace(",", " ").split():
            if name not in verdict.evidence:
                raise UsageError(f"no evidence {name!r} in {verdict.detector}; there is: {', '.join(verdict.evidence)}")
            lines.append(f"{escape(name.replace('_', ' '))}: {escape(_with_source(verdict.evidence[name]))}")
        body = "".join(f"<p>{line}</p>" for line in lines if line)
        return [_raw(f'<div class="verdict {verdict.status}">{body}</div>'), provenance([record])]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?")) else ".") if text else ""


CODE_PX = 22
"""Of a line of source, where the longest one lets it."""

LEAST_CODE_PX = 15
LETTER = 0.602
"""Width of a letter of the code's font, as a share of its height."""


class LabDiff(DeckDirective):
    """The difference in source between two variants: lines that go are marked with -, lines that come with +.

    Letters are as large as the longest line and the slide's height let them be.
    """

    option_spec = {"context": directives.nonnegative_int, "of": directives.unchanged_required}

    def draw(self) -> list[nodes.Node]:
        names = self.argument().split()
        if len(names) != 2:
            raise UsageError(f"lab-diff wants two variants, as in `broken fixed`; given {self.argument()!r}")
        diff = self.records.lab.diff(*names)
        before, after = diff.before, diff.after
        if "of" in self.options:
            before, after = _methods_of(before, after, self.options["of"].replace(",", " ").split())
        context = self.options.get("context", 3)
        lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=context)
        classes = {"-": "goes", "+": "comes"}
        shown = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
        body = "".join(
            f'<span class="{classes.get(line[0], "stays")}">{escape(line[0])} {escape(line[1:]) or " "}</span>'
            for line in shown
        )
        label = f"difference from {names[0]} to {names[1]}"
        return [_raw(f'<pre class="diff" style="font-size:{_code_px(shown):.1f}px" aria-label="{label}">{body}</pre>')]


def _code_px(lines: list[str]) -> float:
    """Height of the letters at which all lines fit.

    Raises:
        UsageError: nobody could read them.
    """
    longest = 1 + max((len(line) for line in lines), default=0)
    width = (SLIDE_PX[0] - 2 * MARGIN_PX - 40) / (LETTER * longest)
    size = min(CODE_PX, width, HEIGHT_PX / (1.3 * max(1, len(lines))))
    if size < LEAST_CODE_PX:
        raise UsageError(f"{len(lines)} lines of up to {longest} letters are too small to read; choose methods with :of:")
    return size


def _methods_of(before: str, after: str, names: list[str]) -> tuple[str, str]:
    """Two classes cut down to their first line and some methods, without the comments beside their lines.

    Raises:
        UsageError: neither is a class that has them.
    """
    found: set[str] = set()
    cut = []
    for source in (before, after):
        [node] = ast.parse(source).body
        methods = {each.name: each for each in getattr(node, "body", ()) if isinstance(each, ast.FunctionDef)}
        chosen = [methods[name] for name in methods if name in names]
        found |= {method.name for method in chosen}
        lines = [re.sub(r"  # .*$", "", line) for line in source.splitlines()]
        parts = [lines[method.lineno - 1 : method.end_lineno] for method in chosen]
        cut.append("\n".join(line for part in ([lines[0]], *parts) for line in [*part, ""]).strip())
    missing = [name for name in names if name not in found]
    if missing:
        raise UsageError(f"no method {missing[0]!r} in either of the two; :of: names methods of a class")
    return cut[0], cut[1]


class Notes(DeckDirective):
    """Speaker notes. The minutes pace the presenter's clock, and add up to the deck's."""

    def draw(self) -> list[nodes.Node]:
        try:
            minutes = float(self.argument())
            assert 0 < minutes <= 30
        except (ValueError, AssertionError):
            raise UsageError(f"notes wants its minutes, above 0 and at most 30; given {self.argument()!r}") from None
        aside = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, aside)
        said = f"{minutes:g} minute{'s' * (minutes != 1)}"
        attributes = {"data-timing": f"{60 * minutes:.0f}", "data-minutes": f"{minutes:g}"}
        return [
            revealjs_section("", **attributes),
            _raw(f'<aside class="notes"><p><strong>{said}</strong></p>'),
            *aside.children,
            _raw("</aside>"),
        ]


class Expects(DeckDirective):
    """An answer that the room will give, and what to say to it: the first line, and the rest."""

    def draw(self) -> list[nodes.Node]:
        answer = self.argument()
        if not self.content:
            raise UsageError(f"expects {answer!r} wants what to say to it, below")
        reply = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, reply)
        return [
            _raw(f'<div class="expects"><p><strong>Expect:</strong> “{escape(answer)}”</p>'),
            *reply.children,
            _raw("</div>"),
        ]


class measured(nodes.General, nodes.Inline, nodes.TextElement):
    """A number in a line of text, with the records that it comes from."""


class Measure(SphinxRole):
    """`record.measure`, or a ratio of two."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        try:
            said, found = records_of(self.env).quantity(self.text)
        except LabkitError as error:
            problem = self.inliner.reporter.error(f"measure: {error}", line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, problem)], [problem]
        return [measured("", said, labels=[record.provenance.label() for record in found])], []


class provenance_line(nodes.General, nodes.Element):
    """Where what stands above comes from."""


def provenance(records: Iterable[Record], *, printed: bool = False) -> nodes.Node:
    """Asks for the records' labels at the foot of the slide, unless they are `printed` in a figure already."""
    return provenance_line("", labels=[record.provenance.label() for record in records], printed=printed)


def say_where_numbers_come_from(app: Sphinx, tree: nodes.document) -> None:
    """One line at the foot of each slide that has numbers of a record: labels of all of them, each once."""
    for section in list(tree.findall(nodes.section)):
        own = [
            node for node in section.findall(lambda n: isinstance(n, measured | provenance_line)) if _slide(node) is section
        ]
        printed = {label for node in own if node.get("printed") for label in node["labels"]}
        labels = [
            label for label in dict.fromkeys(label for node in own for label in node["labels"]) if label not in printed
        ]
        for node in own:
            if isinstance(node, provenance_line):
                node.parent.remove(node)
        if labels:
            line = _raw(f'<p class="provenance">{"<br>".join(map(escape, labels))}</p>')
            at = next((i for i, child in enumerate(section.children) if isinstance(child, nodes.section)), len(section))
            section.insert(at, line)


def _slide(node: nodes.Node) -> nodes.Node:
    while not isinstance(node, nodes.section):
        node = node.parent
    return node


def _raw(html: str) -> nodes.raw:
    return nodes.raw("", html, format="html")


def _plainly(tag: str) -> tuple[Callable, Callable]:
    return (lambda self, node: self.body.append(f"<{tag}>"), lambda self, node: self.body.append(f"</{tag.split()[0]}>"))


def setup(app: Sphinx) -> None:
    for name, directive in {
        "lab-records": LabRecords,
        "lab-figure": LabFigure,
        "lab-measures": LabMeasures,
        "lab-table": LabTable,
        "lab-verdict": LabVerdict,
        "lab-diff": LabDiff,
        "notes": Notes,
        "expects": Expects,
    }.items():
        app.add_directive(name, directive)
    app.add_role("measure", Measure())
    app.add_node(measured, html=_plainly('span class="measured"'), revealjs=_plainly('span class="measured"'))
    app.add_node(provenance_line)
    app.connect("doctree-read", say_where_numbers_come_from)
