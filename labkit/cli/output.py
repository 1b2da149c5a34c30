"""Results of commands: to the terminal and to files."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import RecordError, UsageError
from ..words import printable
from .exit_codes import EXIT_FAILED_CHECK, EXIT_PROGRAM_FAILED
from .options import check_writable, named_path

if TYPE_CHECKING:
    from rich.console import Console

    from ..labs.spec import LabSpec
    from ..reading import Reading
    from ..record.schema import Record

MAX_OUTPUT_BYTES = 2**28
"""Of what a rank printed."""


def console(stderr: bool = False) -> Console:
    """Rich's console, to which a name in brackets or between colons is a name and nothing else."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def replace_what_cannot_be_printed() -> None:
    """Print a replacement for each character that the terminal's encoding lacks, as under PYTHONIOENCODING=ascii."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # closed, or a stream of a test's own
            stream.reconfigure(errors="replace")  # pyright: ignore


def printed_out(code: int) -> int:
    """Hand over what is still to be printed, and give the exit code: where nobody reads on, nothing is wrong."""
    out = sys.stdout
    if out is None:
        return code
    try:
        out.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())  # so that Python's own flush succeeds
        if not isinstance(error, BrokenPipeError):
            if code != EXIT_PROGRAM_FAILED:  # else a command that failed has said why, most likely this
                print(f"labkit: cannot print: {error.strerror}", file=sys.stderr)
            return code or EXIT_PROGRAM_FAILED
    return code


def described(spec: LabSpec) -> list[tuple[str, Any, str]]:
    """(name, default, meaning and limits) of each setting of a lab."""
    found = []
    for field in dataclasses.fields(spec.config):
        meta = field.metadata
        if isinstance(field.default, bool):
            limits = " (true or false)"
        else:
            limits = f" ({', '.join(meta['choices'])})" if meta["choices"] else f" ({meta['low']} to {meta['high']})"
            limits = "" if limits == " (None to None)" else limits
        found.append((field.name, field.default, meta["help"] + limits))
    return found


def write_trace(record: Record, where: Path) -> None:
    """Write a record as a Chrome trace, and say what opens it."""
    import msgspec

    from ..view.trace import chrome_trace

    trace = chrome_trace(record)
    try:
        where.write_bytes(msgspec.json.encode(trace))
    except OSError as error:
        raise UsageError(f"--trace cannot write {where}: {error.strerror}; give another file") from error
    print(f"wrote {where}: {len(trace['traceEvents']):,} events; open it in ui.perfetto.dev", file=sys.stderr)


def write_page(reading: Reading, where: Path) -> None:
    """Write a reading as one page, and say what was left out of it."""
    from ..view.reading_page import page

    figures = {name: partial(reading.figure, name) for name in reading.figures}
    made = page(reading, reading.verdicts, reading.measures, reading.main_measures, reading.tables, figures)
    try:
        where.write_text(made.html, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--html cannot write {where}: {error.strerror}; give another file") from error
    for why in made.not_drawn:
        print(f"not drawn: {why}", file=sys.stderr)
    print(f"wrote {where}: one page that loads nothing; open it in a browser", file=sys.stderr)


def write_json(report: dict[str, Any], where: str | None) -> None:
    """Write a report where --json said: a file, "-" for standard output, None for nowhere."""
    if where is None:
        return
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"
    if where == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    check_writable(named_path(where))
    try:
        Path(where).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--json cannot write {where}: {error.strerror}; give another file") from error


def rank_output(reading: Reading, rank: int) -> str:
    """What one rank printed."""
    from ..ranks.entry import output_file
    from ..record.files import read_regular
    from ..record.schema import Origin

    if not 0 <= rank < reading.run.world_size:
        raise UsageError(f"--output: ranks count from 0 to {reading.run.world_size - 1}; given {rank}")
    if reading.origin is not Origin.LAB or reading.folder is None:
        raise UsageError("--output: labkit did not start this script, and kept nothing of what it printed; leave it out")
    path = output_file(reading.folder / reading.run.role, rank)
    if not path.exists():
        return f"rank {rank} printed nothing\n"
    printed = read_regular(path, MAX_OUTPUT_BYTES, inside=reading.folder).decode(errors="replace")
    return printable(printed.replace("\r\n", "\n"), keep="\n\t")


def draw(reading: Reading, folder: Path) -> None:
    """Draw a record's figures; one that it lacks something for is left out, with a line that says so."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--figures cannot make {folder}: {error.strerror}; give another folder") from error
    for name in reading.figures:
        try:
            reading.figure(name).save(folder / f"{name}.png")
        except (UsageError, RecordError) as error:  # a record need not hold what every figure shows
            print(f"not drawn: {name}: {error}", file=sys.stderr)
            continue
        except OSError as error:
            raise UsageError(f"--figures cannot write into {folder}: {error.strerror}; give another folder") from error
        print(f"drew {folder / f'{name}.png'}", file=sys.stderr)


def show_reading(reading: Reading, *, everything: bool, lacking: bool = False) -> None:
    """Print a reading: its verdicts, then the measures that matter.

    Args:
        everything: list every measure, and the questions that do not apply.
        lacking: list the questions that do not apply.
    """
    from ..view.terminal import print_record

    answers = (reading.verdicts, reading.measures, reading.tables)
    shown = None if everything else reading.main_measures
    print_record(console(), reading, *answers, shown=shown, lacking=lacking or everything)


def fail_on_hit(reading: Reading, statuses: list[str] | None) -> None:
    """End with 1 where a verdict has one of these statuses, and say which."""
    hit = [verdict for verdict in reading.verdicts if verdict.status in (statuses or ())]
    if hit:
        print(f"--fail-on: {', '.join(f'{v.detector} is {v.status}' for v in hit)}", file=sys.stderr)
        raise typer.Exit(EXIT_FAILED_CHECK)
