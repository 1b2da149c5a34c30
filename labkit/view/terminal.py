"""Records and verdicts in a terminal, and the progress bar of a run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.panel import Panel
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from ..detect.meanings import meaning_of
from ..detect.runs import names_of
from ..detect.verdict import Verdict, Verdicts
from ..labs.spec import LabSpec
from ..record.quantity import Quantity
from ..record.roles import label_of
from ..record.schema import Origin, Record
from ..record.table import Table as WordTable
from ..words import plural
from . import palette
from .tables import in_terminal

if TYPE_CHECKING:
    from ..ranks.progress import Progress as RunProgress

_STYLE = {"found": "bold red", "clear": "bold green", "inconclusive": "bold yellow", "not_applicable": "dim"}


def print_labs(console: Console, specs: Sequence[LabSpec]) -> None:
    """The labs, a line each."""
    table = Table(box=None, pad_edge=False)
    for heading in ("lab", "slug", "question", "min"):
        table.add_column(heading, justify="right" if heading == "min" else "left")
    for spec in specs:
        table.add_row(f"{spec.number:02d}", spec.slug, spec.question, str(spec.minutes))
    console.print(table)
    console.print("\nRun one:                     labkit run duplicate-data")
    console.print("Its variants and settings:   labkit run duplicate-data --help-lab")


def print_lab(console: Console, spec: LabSpec, settings: list[tuple[str, Any, str]]) -> None:
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


def _defaults(spec: LabSpec) -> str:
    """What runs without an option."""
    parts = [f"--variant {spec.variants[0].name}"] if spec.variants else []
    parts.append(f"--ranks {spec.ranks}")
    if spec.hosts > 1:
        parts.append(f"--hosts {spec.hosts} --link {spec.link}")
    return " ".join(parts)


def print_record(
    console: Console,
    record: Record,
    verdicts: Verdicts,
    measures: Mapping[str, Quantity],
    tables: Sequence[WordTable] = (),
    *,
    shown: Sequence[str] | None = None,
    lacking: bool = False,
) -> None:
    """A record with its answers: the verdicts, then the measures, then where it comes from and is kept.

    Names and paths are printed as they are: to rich a `[b]` in them would be markup.

    Args:
        shown: names of the measures to show; all if None.
        lacking: show the questions that do not apply too, with what they lack.
    """
    run = record.run
    title = f"{record.title}: {run.ranks_said}, {run.steps_said}, {run.wall_s:.2f} s"
    console.print(Text(title, style="bold"))
    _print_verdicts(console, record, verdicts, lacking)
    console.print()
    for one in tables:
        console.print(*in_terminal(one), sep="\n")
        console.print()
    if measures:
        _print_measures(console, measures, shown)
        console.print()
    made = " ".join(part.made for part in (record.network, record.storage) if part)
    for line in (record.provenance.label(), made, record.ended_early, record.baseline_doubts):
        if line:
            console.print(Text(line, style="dim"))
    if record.folder is not None and record.origin is Origin.LAB:
        console.print(f"kept in {record.folder}", style="dim", soft_wrap=True, markup=False)


def _print_verdicts(console: Console, record: Record, verdicts: Verdicts, lacking: bool) -> None:
    """The verdicts, those that found something first; the questions that do not apply are counted unless `lacking`."""
    apply = [verdict for verdict in verdicts if verdict.status != "not_applicable"]
    for verdict in sorted(apply, key=lambda verdict: verdict.status != "found"):
        console.print(verdict_in_terminal(verdict))
    others = [verdict for verdict in verdicts if verdict.status == "not_applicable"]
    if lacking:
        for verdict in others:
            console.print(verdict_in_terminal(verdict))
    elif verdicts.folded:
        how = f"labkit show {record.folder} --lab SLUG"
        console.print(f"{verdicts.closing(how)}; labkit list has the slugs", style="dim", soft_wrap=True, markup=False)
    elif others:
        said = "1 question does not apply" if len(others) == 1 else f"{len(others)} questions do not apply"
        console.print(Text(f"{said} to this run; --all says why", style="dim"))


def _print_measures(console: Console, measures: Mapping[str, Quantity], shown: Sequence[str] | None) -> None:
    """Measures, each with its meaning in a few words."""
    names = list(measures) if shown is None else shown
    table = Table(box=None, pad_edge=False)
    table.add_column("measure", no_wrap=True)
    table.add_column("value")
    table.add_column("what it is", style="dim")
    for name in names:
        table.add_row(Text(name), Text(measures[name].said), Text(meaning_of(name)))
    if names:
        console.print(table)
    if left := len(measures) - len(names):
        console.print(Text(f"{left} more {'measure' if left == 1 else 'measures'}: --all shows them", style="dim"))


def print_runs(console: Console, runs: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """The kept runs, two lines each: what ran and what was found; its settings and name. A name is never cut."""
    if not runs:
        console.print(f"no run in {folder} yet; make one with: labkit run duplicate-data", soft_wrap=True)
        return
    for run in runs:
        when, what = run["date"][:16].replace("T", " "), f"{run['lab']} / {run['variant']}"
        line = Text.assemble(f"{when}  ", (what, "bold"), f"  {plural(run['ranks'], 'rank')}  ", run["verdict"])
        console.print(line, soft_wrap=True)
        told = "  ".join(part for part in (run["name"], run["settings"]) if part)
        console.print(f"                  {told}", style="dim", soft_wrap=True, markup=False)
    console.print(
        f"\nin {folder}; look at one again: labkit show NAME, where its last six letters do", style="dim", soft_wrap=True
    )


def print_comparison(
    console: Console, sides: Sequence[tuple[Record, Mapping[str, Quantity]]], main: Sequence[str], sentences: Sequence[str]
) -> None:
    """How two runs differ, in sentences, and the measures of both that a person reads first.

    Args:
        sides: both runs, the earlier first, each with its measures.
    """
    records = [record for record, _ in sides]
    names = names_of(records)
    console.print(Text(f"{records[-1].lab}: {names[1]}, beside {names[0]}", style="bold"), soft_wrap=True)
    for sentence in sentences:
        console.print(Text(f"• {sentence}"))
    console.print()
    table = Table(box=None, pad_edge=False)
    for title in ("measure", f"before: {names[0]}", f"now: {names[1]}"):
        table.add_column(Text(title), overflow="fold")
    for name in main:
        table.add_row(name, *(Text(measures[name].said if name in measures else "") for _, measures in sides))
    console.print(table)
    for label in dict.fromkeys(record.provenance.label() for record in records):
        console.print(Text(label, style="dim"))


def verdict_in_terminal(verdict: Verdict) -> Panel | Text:
    """A verdict, to print: one that found something whole, the others as a sentence."""
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
def progress_bar(console: Console) -> Iterator[Callable[[str, RunProgress], None]]:
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
        tasks: dict[str, TaskID] = {}

        def on_progress(role: str, progress: RunProgress) -> None:
            if role not in tasks:
                tasks[role] = bar.add_task(label_of(role, len(progress.steps)), total=1.0, steps="…")
            bar.update(tasks[role], completed=progress.fraction, steps=progress.said)

        yield on_progress
