"""What a machine can do as tables: in a terminal, and as cards; and which labs it can show."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..record.baseline import Baseline, quantities
from ..results import Bench, LabsHere
from .cards import SMALL, box, escape
from .terminal import verdict_in_terminal


def rows_of(baseline: Baseline) -> list[tuple[str, str, str, str, str]]:
    """(measure, value, unit, spread, how it was measured), a row a measure."""
    rows = []
    for name, quantity in quantities(baseline).items():
        spread = f"{baseline.spread[name]:.0%}" if name in baseline.spread else ""
        rows.append((name.replace("_", " "), f"{quantity.value:,.4g}", quantity.unit, spread, baseline.how.get(name, "")))
    missing = [name for name in baseline.how if name not in quantities(baseline)]
    return rows + [(name.replace("_", " "), "–", "", "", baseline.how[name]) for name in missing]


HEADINGS = ("measure", "value", "unit", "spread", "how")


def print_bench(console: Console, found: Bench, here: LabsHere) -> None:
    """The table of a bench, its verdicts, where it is kept, and which labs run here."""
    table = Table(box=None, pad_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading in ("value", "spread") else "left")
    for row in rows_of(found.baseline):
        table.add_row(*row)
    console.print(table)
    console.print(Text("spread: share of the median repeat's time that the best did without", style="dim"))
    console.print(Text(found.baseline.label(), style="dim"))
    console.print(Text(found.reason, style="dim"))
    if found.baseline.caution:
        console.print(Text(found.baseline.caution, style="bold yellow"))
    console.print()
    for verdict in found.verdicts:
        console.print(verdict_in_terminal(verdict))
    if found.verdicts:
        console.print()
    print_labs_here(console, here)
    if not found.baseline.set_aside:
        console.print(f"kept in {found.report()['kept']}", style="dim", soft_wrap=True, markup=False)


def print_labs_here(console: Console, here: LabsHere) -> None:
    """Which labs are measured here, a line each."""
    table = Table(box=None, pad_edge=False)
    for heading in ("lab", "here", "needs a GPU", "simulated"):
        table.add_column(heading)
    for row in here.rows:
        table.add_row(row.slug, row.runs, ", ".join(row.needs_gpu) or "–", ", ".join(row.simulated) or "–")
    console.print(table)
    console.print(Text(f"on {here.machine}", style="dim"))


def baseline_card(baseline: Baseline) -> str:
    """A baseline as a card."""
    cell = "padding:.1em .8em;text-align:"
    whole = {"left": "left;white-space:nowrap", "right": "right;white-space:nowrap"}
    sides = {"measure": whole["left"], "unit": whole["left"], "value": whole["right"], "spread": whole["right"]}
    head = "".join(f"<th style='{cell}{sides.get(name, 'left')}'>{name}</th>" for name in HEADINGS)
    rows = "".join(
        "<tr>"
        + "".join(f"<td style='{cell}{sides.get(n, 'left')}'>{escape(v)}</td>" for n, v in zip(HEADINGS, row, strict=True))
        + "</tr>"
        for row in rows_of(baseline)
    )
    note = f"spread: share of the median repeat's time that the best did without<br>{escape(baseline.label())}"
    note += f"<br><strong>{escape(baseline.caution)}</strong>" if baseline.caution else ""
    return box(f"<table><tr>{head}</tr>{rows}</table><div style='{SMALL}'>{note}</div>")


def labs_here_card(here: LabsHere) -> str:
    """Which labs are measured here, as a card."""
    cell = "padding:.1em .8em;text-align:left;vertical-align:top"
    head = "".join(
        f"<th style='{cell}'>{name}</th>" for name in ("lab", "ranks", "here", "what needs a GPU", "what is simulated")
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td style='{cell}'>{escape(text)}</td>"
            for text in (
                f"{row.number:02d} {row.slug}",
                str(row.ranks),
                row.runs,
                ", ".join(row.needs_gpu) or "–",
                ", ".join(row.simulated) or "–",
            )
        )
        + "</tr>"
        for row in here.rows
    )
    return box(f"<table><tr>{head}</tr>{rows}</table><div style='{SMALL}'>on {escape(here.machine)}</div>")
