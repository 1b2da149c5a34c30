"""Records, verdicts and labs as small pieces of HTML: inline styles only, readable in light and dark, printed, and aloud."""

from __future__ import annotations

import difflib
import html
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..record.quantity import Quantity
from ..words import printable
from . import palette

if TYPE_CHECKING:
    from ..detect.cost import Cost
    from ..detect.verdict import Verdict, Verdicts
    from ..labs.spec import LabSpec
    from ..record.schema import Record
    from ..results import CheckResult, Comparison, Diff

_BOX = (
    "border:1px solid #8888;border-left:6px solid {colour};border-radius:4px;padding:.6em .9em;margin:.5em 0;max-width:62em"
)
SMALL = "font-size:85%;opacity:.8"
_CHIP = "background:{colour};color:white;border-radius:3px;padding:.1em .5em;font-weight:bold;white-space:nowrap"


def escape(text: str) -> str:
    """Text as a page shows it: no tag in it, no end of an attribute, and no character that acts on what is around it."""
    return html.escape(printable(text, keep="\n\t"))


def chip(status: str, word: str = "") -> str:
    """A status as a word with its mark, so that it needs no colour; `word` stands in place of the status's own."""
    colour, mark = palette.STATUS_COLOUR[status], palette.STATUS_MARK[status]
    return f'<span style="{_CHIP.format(colour=colour)}">{mark} {word or status.replace("_", " ")}</span>'


def box(body: str, colour: str = palette.GREY) -> str:
    """HTML in a frame, as all cards have it."""
    return f'<div style="{_BOX.format(colour=colour)}">{body}</div>'


def _quantities(values: Mapping[str, Quantity]) -> str:
    rows = "".join(
        f'<tr><td style="text-align:left;padding:.1em 1em .1em 0">{escape(name.replace("_", " "))}</td>'
        f'<td style="text-align:right">{escape(str(quantity))}'
        + (f" <em>({escape(quantity.source)})</em>" if quantity.source else "")
        + "</td></tr>"
        for name, quantity in values.items()
    )
    return f'<table style="margin:.3em 0;{SMALL}">{rows}</table>'


def verdict_card(verdict: Verdict) -> str:
    """One verdict: status, question, cause, fix, place, evidence."""
    parts = [f"<div>{chip(verdict.status)} <strong>{escape(verdict.question)}</strong></div>"]
    if verdict.cause:
        parts.append(f"<div>{escape(sentence(verdict.cause))}</div>")
    if verdict.fix and verdict.status != "clear":
        parts.append(f"<div><strong>Fix:</strong> {escape(sentence(verdict.fix))}</div>")
    if verdict.where and verdict.status == "found":
        parts.append(f"<div><strong>Where:</strong> <code>{escape(verdict.where)}</code></div>")
    if verdict.waste is not None:
        parts.append(f"<div><strong>Waste:</strong> {verdict.waste:.1%} of device time</div>")
    if verdict.evidence:
        parts.append(f"<details><summary style='{SMALL}'>evidence</summary>{_quantities(verdict.evidence)}</details>")
    return box("".join(parts), palette.STATUS_COLOUR[verdict.status])


def verdicts_card(verdicts: Verdicts) -> str:
    """All verdicts on one record: those that found something whole, the others a line each."""
    found = "".join(verdict_card(verdict) for verdict in verdicts.found)
    rest = "".join(
        f"<div style='margin:.25em 0'>{chip(v.status)} {escape(v.question)} "
        f"<span style='{SMALL}'>{escape(sentence(v.cause))}"
        + (f" To know: {escape(sentence(v.fix))}" if v.fix and v.status in ("inconclusive", "not_applicable") else "")
        + "</span></div>"
        for v in verdicts.shown
        if v.status != "found"
    )
    if verdicts.folded:
        rest += f"<div style='margin:.25em 0;{SMALL}'>{escape(sentence(verdicts.closing()))}</div>"
    return found + (box(rest) if rest else "")


def _said_setting(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def record_card(record: Record) -> str:
    """What ran, and with what provenance."""
    run = record.run
    set_ = {name.replace("_", " "): value for name, value in record.config.items() if value not in ("", None)}
    settings = ", ".join(f"{name} {_said_setting(value)}" for name, value in set_.items())
    return box(
        f"<div><strong>{escape(record.title)}</strong>: {run.ranks_said}, {run.steps_said}, "
        f"{run.wall_s:.2f} s</div><div style='{SMALL}'>{escape(settings)}</div>"
        f"<div style='{SMALL}'>{escape(record.provenance.label())}</div>"
        + (f"<div style='{SMALL}'>{escape(record.ended_early)}</div>" if record.ended_early else "")
        + (f"<div style='{SMALL}'>{escape(record.baseline_doubts)}</div>" if record.baseline_doubts else "")
        + (f"<div style='{SMALL}'>{escape(record.network.made)}</div>" if record.network else "")
        + (f"<div style='{SMALL}'>{escape(record.storage.made)}</div>" if record.storage else "")
    )


def lab_card(spec: LabSpec) -> str:
    """A lab's question and its variants."""
    rows = "".join(
        f"<tr><td style='text-align:left'><code>{escape(v.name)}</code></td>"
        f"<td style='text-align:left'>{escape(v.summary)}</td></tr>"
        for v in spec.variants
    )
    return box(
        f"<div><strong>Lab {spec.number:02d}, {escape(spec.title)}:</strong> {escape(spec.question)}</div>"
        f"<table style='margin:.3em 0'>{rows}</table>",
        palette.BLUE,
    )


def comparison_card(comparison: Comparison) -> str:
    """Measures of several records side by side, with their provenance."""
    columns, labels = comparison.columns, comparison.labels
    names = list(dict.fromkeys(name for column in columns.values() for name in column))
    cell = "text-align:right;padding:.1em .8em"
    head = "".join(f"<th style='{cell}'>{escape(title)}</th>" for title in columns)
    rows = "".join(
        f"<tr><td style='text-align:left'>{escape(name.replace('_', ' '))}</td>"
        + "".join(
            f"<td style='{cell}'>{escape(column[name].said if name in column else '')}</td>" for column in columns.values()
        )
        + "</tr>"
        for name in names
    )
    return box(f"<table><tr><th></th>{head}</tr>{rows}</table><div style='{SMALL}'>{'<br>'.join(map(escape, labels))}</div>")


def check_card(result: CheckResult) -> str:
    """What a check of an exercise found, and how to repeat it; or why it could not be told."""
    if result.doubt:
        return box(f"{chip('inconclusive', 'cannot tell')} On this machine now: {escape(result.doubt)}", palette.ORANGE)
    if result.passed:
        return box(f"{chip('clear', 'solved')} Every check passed.", palette.GREEN)
    items = "".join(f"<li>{escape(text)}</li>" for text in result.findings)
    note = f"<div style='{SMALL}'>{escape(result.again)}</div>" if result.again else ""
    return box(f"{chip('found', 'not yet')} {len(result.findings)} still wrong.<ul>{items}</ul>{note}", palette.VERMILION)


def diff_card(diff: Diff) -> str:
    """Two sources, line by line: what goes is marked with -, what comes with +."""
    lines = []
    for line in difflib.ndiff(diff.before.splitlines(), diff.after.splitlines()):
        mark, text = line[0], line[2:]
        if mark == "?":
            continue
        colour = {"-": palette.VERMILION, "+": palette.GREEN}.get(mark)
        style = f"border-left:4px solid {colour};padding-left:.4em" if colour else "padding-left:calc(.4em + 4px)"
        weight = "font-weight:bold" if colour else ""
        lines.append(f"<div style='{style};{weight}'>{mark} {escape(text)}</div>")
    title = f"<div style='{SMALL}'>− {escape(diff.before_name)} &nbsp; + {escape(diff.after_name)}</div>"
    return box(f"{title}<pre style='margin:.3em 0;line-height:1.35'>{''.join(lines)}</pre>")


def cost_card(waste: float, cost: Cost, *, num_gpus: float, hours: float, price: float) -> str:
    """What a waste costs at a scale that the reader chose."""
    return box(
        f"<strong>This on {num_gpus:,.0f} GPUs for {hours:,.0f} h at {price:,.2f} an hour wastes "
        f"{cost.money:,.0f}</strong>: {gpu_hours_said(waste, cost, num_gpus * hours)}."
        f"<div style='{SMALL}'>simulated: the measured share of waste, times size, time and price as entered</div>",
        palette.ORANGE,
    )


def gpu_hours_said(waste: float, cost: Cost, whole: float) -> str:
    """Wasted GPU-hours of all, as words: "3,456 of 4,608 GPU-hours (75 %)"."""
    return f"{cost.gpu_hours:,.0f} of {whole:,.0f} GPU-hours ({100 * waste:.3g} %)"


def note_card(text: str, status: str = "not_applicable") -> str:
    """A sentence with a status colour."""
    return box(escape(text), palette.STATUS_COLOUR[status])


def sentence(text: str) -> str:
    """A cause or a fix as a sentence; a first word that is a name of code ("num_workers=0") stays as it is."""
    first = text.split(" ", 1)[0].rstrip(",:;")
    begun = text[:1].upper() + text[1:] if first.isalpha() or "'" in first else text
    return begun + ("" if begun.endswith((".", "?", "!")) or not begun else ".")
