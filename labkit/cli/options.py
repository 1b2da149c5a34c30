"""Options that several commands take, with their types, and words of options to values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import UnknownName, UsageError, shown

STATUSES = ("found", "clear", "inconclusive", "not_applicable")


def option(help: str, metavar: str, *names: str) -> Any:
    """An option of the command line; `metavar` says in its help what it takes."""
    return typer.Option(*names, metavar=metavar, help=help)


Ranks = Annotated[int | None, option("Processes; the lab's default if left out.", "INTEGER")]
Device = Annotated[str | None, option("cpu or cuda; chosen from the machine if left out.", "TEXT")]
Json = Annotated[str | None, option("Write the result as JSON; - is standard output.", "FILE")]
FailOn = Annotated[
    list[str] | None,
    option("Exit with 1 if a verdict has this status: found, clear, inconclusive, not_applicable.", "STATUS", "--fail-on"),
]
All = Annotated[bool, typer.Option("--all", help="Show every measure, and the questions that do not apply.")]


def check_statuses(words: list[str] | None) -> None:
    """Refuse what is no status.

    Raises:
        UnknownName: with the valid ones.
    """
    for word in words or ():
        if word not in STATUSES:
            raise UnknownName("status", word, STATUSES)


def pairs(words: list[str]) -> dict[str, Any]:
    """Settings from words as --set takes them, KEY=VALUE."""
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


def named_path(word: str) -> Path:
    """A path that was given: an empty word would be the folder that the shell is in, a NUL is in no name."""
    if not word.strip() or "\0" in word:
        raise UsageError(f"a file or folder needs a name; given {shown(word)}; give one, as in ./mine")
    return Path(word)


def check_writable(path: Path, option: str = "--json") -> None:
    """Refuse a file that cannot be written, before anything is run for it."""
    if path.is_dir() or not path.absolute().parent.is_dir() or (option != "--json" and str(path) == "-"):
        or_else = ", or - for standard output" if option == "--json" else ""
        raise UsageError(f"{option} cannot write {path}: give a file in a folder that exists{or_else}")


def check_json(where: str | None) -> None:
    """Refuse a place for --json that cannot be written."""
    if where not in (None, "-"):
        check_writable(named_path(str(where)))
