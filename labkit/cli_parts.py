"""What the command line does beside its commands: words to values, results to files and to the terminal."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import re
import sys
from pathlib import Path
from typing import Any

from .errors import RecordError, UsageError, shown
from .words import printable

MAX_OUTPUT_BYTES = 2**28
"""Of what a rank printed."""


def console(stderr: bool = False) -> Any:
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
            if code != 3:  # else a command that failed has said why, most likely this
                print(f"labkit: cannot print: {error.strerror}", file=sys.stderr)
            return code or 3
    return code


def described(spec: Any) -> list[tuple[str, Any, str]]:
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


def pairs(words: list[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise UsageError(f"--set wants KEY=VALUE, as in --set batch=16; given {shown(word)}")
        together(given, {name.strip().replace("-", "_"): value.strip()})
    return given


def together(given: dict[str, Any], more: dict[str, Any]) -> None:
    """Add settings to those that were given; one that is set to two values is refused: which was meant is not known."""
    for name, value in more.items():
        if given.setdefault(name, value) != value:
            raise UsageError(f"{name} is set twice, to {shown(given[name])} and to {shown(value)}; leave one out")


def one_or_more(option: str, words: str) -> list[str]:
    """What stands between commas: no part empty, and none twice."""
    parts = [word.strip() for word in words.split(",")]
    if "" in parts or len(set(parts)) < len(parts):
        what = "is empty" if "" in parts else "is there twice"
        raise UsageError(f"{option} wants names with commas between, each once, and one {what}; given {shown(words)}")
    return parts


def whole(option: str, word: str) -> int:
    """A whole number as people write one: no letters, no digits of other scripts, no underscores."""
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", word):
        raise UsageError(f"{option} must be a whole number; given {shown(word)}")
    return int(word)


_NUMBER = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)


def number(option: str, word: str) -> float:
    """A number as people write one, neither infinite nor NaN."""
    if not _NUMBER.fullmatch(word) or not math.isfinite(float(word)):
        raise UsageError(f"{option} must be a number; given {shown(word)}")
    return float(word)


def seconds(option: str, word: str) -> float:
    try:
        value = number(option, word)
    except UsageError:
        value = -1.0
    if not 0 < value < 1e7:
        raise UsageError(f"{option} must be a number of seconds above 0; given {shown(word)}")
    return value


def named_path(word: str) -> Path:
    """A path that was given: an empty word would be the folder that the shell is in, a NUL is in no name."""
    if not word.strip() or "\0" in word:
        raise UsageError(f"a file or folder needs a name; given {shown(word)}; give one, as in ./mine")
    return Path(word)


def check_writable(path: Path, option: str = "--json") -> None:
    if path.is_dir() or not path.absolute().parent.is_dir() or (option == "--trace" and str(path) == "-"):
        or_else = ", or - for standard output" if option == "--json" else ""
        raise UsageError(f"{option} cannot write {path}: give a file in a folder that exists{or_else}")


def write_trace(record: Any, where: Path) -> None:
    import msgspec

    from .view.trace import chrome_trace

    trace = chrome_trace(record)
    try:
        where.write_bytes(msgspec.json.encode(trace))
    except OSError as error:
        raise UsageError(f"--trace cannot write {where}: {error.strerror}; give another file") from error
    print(f"wrote {where}: {len(trace['traceEvents']):,} events; open it in ui.perfetto.dev", file=sys.stderr)


def write_json(report: dict[str, Any], where: str | None) -> None:
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


def rank_output(record: Any, rank: int) -> str:
    if not 0 <= rank < record.run.world_size:
        raise UsageError(f"--output: ranks count from 0 to {record.run.world_size - 1}; given {rank}")
    if not record.lab:
        raise UsageError("--output: labkit did not start this script, and kept nothing of what it printed; leave it out")
    from .ranks.entry import output_file
    from .record.files import read_regular

    path = output_file(record.folder / record.run.role, rank)
    if not path.exists():
        return f"rank {rank} printed nothing\n"
    printed = read_regular(path, MAX_OUTPUT_BYTES, inside=record.folder).decode(errors="replace")
    return printable(printed.replace("\r\n", "\n"), keep="\n\t")


def measured(lab: Any, record: Any) -> tuple[dict[str, Any], list[Any], list[str]]:
    """(measures, tables, why there are none of them) of a lab: what cannot be measured costs no verdict."""
    found: list[Any] = [{}, []]
    left_out = []
    for at, ask in enumerate((lab.measures, lab.tables)):
        try:
            found[at] = ask(record)
        except RecordError as error:
            left_out.append(str(error))
    return found[0], found[1], left_out


def draw(labs: dict[str, Any], record: Any, folder: Path) -> None:
    """Draw figures, each by its lab; one that lacks what it shows is left out, with a line that says so."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--figures cannot make {folder}: {error.strerror}; give another folder") from error
    for name, opened in labs.items():
        try:
            opened.figure(name, record).save(folder / f"{name}.png")
        except (UsageError, RecordError) as error:  # a record need not hold what every figure shows
            print(f"not drawn: {name}: {error}", file=sys.stderr)
            continue
        except OSError as error:
            raise UsageError(f"--figures cannot write into {folder}: {error.strerror}; give another folder") from error
        print(f"drew {folder / f'{name}.png'}", file=sys.stderr)
