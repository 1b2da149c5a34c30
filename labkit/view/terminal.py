"""Records and verdicts in a terminal, and the progress bar of a run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console, Group
from rich.panel import Panel
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from ..record.roles import label_of
from . import palette
from .tables import in_terminal

_STYLE = {"found": "bold red", "clear": "bold green", "inconclusive": "bold yellow", "not_applicable": "dim"}


def print_labs(console: Console, specs: list[Any]) -> None:
    """The labs, a line each."""
    table = Table(box=None, pad_edge=False)
    for heading in ("lab", "slug", "question", "min"):
        table.add_column(heading, justify="right" if heading == "min" else "left")
    for spec in specs:
        table.add_row(f"{spec.number:02d}", spec.slug, spec.question, str(spec.minutes))
    console.print(table)
    console.print("\nRun one:                     labkit run duplicate-data")
    console.print("Its variants and settings:   labkit run duplicate-data --help-lab")


def print_lab(console: Console, spec: Any, settings: list[tuple[str, Any, str]]) -> None:
    """One lab's variants and settings."""
    console.print(Text.assemble((f"{spec.number:02d} {spec.slug}", "bold"), f": {spec.question}\n"))
    table = Table(box=None, pad_edge=False)
    table.add_column("variant")
    table.add_column("what it is")
    for variant in spec.variants:
        table.add_row(variant.name, variant.summary)
    if spec.variants:
        console.print(table)
        console.print()
    table = Table(box=None, pad_edge=False)
    for heading in ("setting", "default", "meaning"):
        table.add_column(heading)
    for name, default, meaning in settings:
        table.add_row(name, str(default), meaning)
    console.print(table)
    console.print(f"\nUnless told otherwise: {_defaults(spec)}")
    console.print("Set a setting: --set name=value; --steps and --epochs are short for theirs.")


def _defaults(spec: Any) -> str:
    """What runs without an option."""
    parts = [f"--variant {spec.variants[0].name}"] if spec.variants else []
    parts.append(f"--ranks {spec.ranks}")
    if spec.hosts > 1:
        parts.append(f"--hosts {spec.hosts} --link {spec.link}")
    return " ".join(parts)


def print_record(console: Console, record: Any, measures: dict[str, Any], verdicts: Any, tables: Sequence[Any] = ()) -> None:
    """The card of a record: what ran, the measures, the verdicts, where it is kept.

    Names and paths are printed as they are: to rich a `[b]` in them would be markup.
    """
    run = record.run
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    for name, quantity in measures.items():
        table.add_row(Text(name), Text(quantity.said))
    made = " ".join(part.made for part in (record.network, record.storage) if part)
    console.print(
        Panel(
            Group(
                table,
                *(
                    Text(line, style="dim")
                    for line in (record.provenance.label(), made, record.ended_early, record.baseline_doubts)
                    if line
                ),
            ),
            title=Text(f"{record.title}: {run.ranks_said}, {run.steps_said}, {run.wall_s:.2f} s"),
            title_align="left",
        )
    )
    for one in tables:
        console.print(*in_terminal(one), sep="\n")
        console.print()
    for verdict in verdicts.shown:
        console.print(_verdict(verdict))
    if verdicts.folded:
        how = f"labkit show {record.folder} --lab SLUG"
        console.print(f"{verdicts.closing(how)}; labkit list has the slugs", style="dim", soft_wrap=True, markup=False)
    if record.folder is not None and record.lab:
        console.print(f"kept in {record.folder}", style="dim", soft_wrap=True, markup=False)


def print_runs(console: Console, runs: list[dict[str, Any]], folder: Any) -> None:
    """The kept runs, a line each; a name is never cut, since `labkit show` wants it whole."""
    if not runs:
        console.print(f"no run in {folder} yet; make one with: labkit run duplicate-data", soft_wrap=True)
        return
    lines = [("date", "ranks", "lab / variant", "name")]
    lines += [
        (run["date"][:16].replace("T", " "), str(run["ranks"]), f"{run['lab']} / {run['variant']}", run["name"])
        for run in runs
    ]
    date, ranks, what = (max(len(line[column]) for line in lines) for column in range(3))
    for line in lines:  # no table of rich's: on a narrow terminal it cuts
        text = f"{line[0]:<{date}}  {line[1]:>{ranks}}  {line[2]:<{what}}  {line[3]}"
        console.print(text, soft_wrap=True, markup=False)
    console.print(f"\nin {folder}; look at one again: labkit show NAME", style="dim", soft_wrap=True)


def _verdict(verdict: Any) -> Any:
    mark = palette.STATUS_MARK[verdict.status]
    head = Text.assemble(
        (f"{mark} {verdict.status.replace('_', ' ').upper()}", _STYLE[verdict.status]), f"  {verdict.question}"
    )
    if verdict.status == "found":
        lines = [head, Text(f"Cause: {verdict.cause}."), Text(f"Fix:   {verdict.fix}.")]
        if verdict.where:
            lines.append(Text(f"Where: {verdict.where}"))
        if verdict.waste is not None:
            lines.append(Text(f"Waste: {verdict.waste:.1%} of device time"))
        return Panel(Group(*lines), border_style="red", title=verdict.detector, title_align="left")
    tail = f"  {verdict.cause}" + (f"; to know: {verdict.fix}" if verdict.fix and verdict.status != "clear" else "")
    return Text.assemble(head, (tail, "dim"))


@contextlib.contextmanager
def progress_bar(console: Console) -> Iterator[Any]:
    """A progress bar fed by the ranks; gives the callback for Lab.run. Shown on a terminal only."""
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[steps]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        tasks: dict[str, Any] = {}

        def on_progress(role: str, progress: Any) -> None:
            if role not in tasks:
                tasks[role] = bar.add_task(label_of(role, len(progress.steps)), total=1.0, steps="…")
            bar.update(tasks[role], completed=progress.fraction, steps=progress.said)

        yield on_progress
