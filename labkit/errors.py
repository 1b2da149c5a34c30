"""The named errors. Each message says what was given, what was expected and what to try."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .words import printable


def shown(value: object, most: int = 80) -> str:
    """A value as a message shows it: cut short, and no error of its own, whatever its `repr` does."""
    try:
        text = repr(value)
    except Exception:
        return f"a {type(value).__name__} that cannot be printed"
    return text if len(text) <= most else f"{text[:most]}…"


class LabkitError(Exception):
    """Base of every error that labkit raises on purpose. What it quotes cannot act on the terminal that shows it."""

    def __str__(self) -> str:
        return printable(super().__str__(), keep="\n\t")


class UsageError(LabkitError, ValueError):
    """Something that the caller can correct: the command line ends with 2."""


class UnknownName(UsageError):
    """A name that is not in a closed list.

    Args:
        what: the kind of thing, as in "variant".
        given: what was asked for.
        known: the valid names; the nearest spelling is proposed.
    """

    def __init__(self, what: str, given: object, known: Iterable[str]) -> None:
        self.what, self.given, self.known = what, given, sorted(known)
        near = difflib.get_close_matches(str(given), self.known, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        super().__init__(f"no {what} {str(given)!r}; there are: {', '.join(self.known) or 'none'}.{hint}")


class RecordError(LabkitError, ValueError):
    """A record that cannot be read: names the file and, where there is one, the line."""


class CheckpointError(LabkitError):
    """A checkpoint that cannot be written or read: names the folder, what is wrong there, and what to try."""


class LaunchError(LabkitError):
    """The ranks could not be started."""


class RunStopped(LabkitError):
    """The run was stopped from outside (Stop, an interrupt)."""


@dataclass(frozen=True)
class RankReport:
    """What is known of one rank that did not finish.

    Attributes:
        rank: global rank.
        state: "failed", "killed", "waiting", "returned" or "not started".
        message: one line: the exception, the signal or where it stood.
        where: file:line in the program, where known.
        text: the traceback or the stack of every thread, as text.
    """

    rank: int
    state: str
    message: str
    where: str | None = None
    text: str = ""

    def line(self) -> str:
        return f"rank {self.rank} {self.state}: {self.message}" + (f" at {self.where}" if self.where else "")


class RankFailed(LabkitError):
    """A rank raised, exited with an error or was killed. `ranks` holds a report for each rank, the cause first."""

    def __init__(self, summary: str, ranks: Mapping[int, RankReport], folder: str = "") -> None:
        self.ranks = dict(ranks)
        self.folder = folder
        super().__init__("\n  ".join([summary, *(r.line() for r in self.ranks.values())]))


class RankLeftEarly(RankFailed):
    """A rank returned while the others still waited for it in a collective."""


class RankTimeout(RankFailed):
    """The deadline passed; each rank's stack was taken before it was ended."""


class OutOfMemory(RankFailed):
    """The ranks were about to fill the machine's memory, and were ended before; each report says what its rank held."""
