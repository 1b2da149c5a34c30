"""What the command line does beside its commands: words to values, results to files and to the terminal."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

from .errors import RecordError, UsageError
from .words import printable

MAX_OUTPUT_BYTES = 2**28
"""Of what a rank printed."""


def console(stderr: bool = False) -> Any:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


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
    given = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise UsageError(f"--set wants KEY=VALUE, as in --set batch=16; given {word!r}")
        given[name.strip().replace("-", "_")] = value.strip()
    return given


def whole(option: str, word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise UsageError(f"{option} must be a whole number; given {word!r}") from None


def number(option: str, word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise UsageError(f"{option} must be a number; given {word!r}") from None


def seconds(option: str, word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e7:
        raise UsageError(f"{option} must be a number of seconds above 0; given {word!r}")
    return value


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
    check_writable(Path(where))
    try:
        Path(where).write_text(text)
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
