"""The lines of a script that a finding points at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..words import printable

_MOST_BYTES = 2**22
_MOST_LETTERS = 160


@dataclass(frozen=True)
class Excerpt:
    """Some lines of a file.

    Attributes:
        path: as the finding names it.
        line: the number of the line that it points at, from 1.
        lines: (number, text) of it and of those around it, fit to be shown.
    """

    path: str
    line: int
    lines: tuple[tuple[int, str], ...]

    @property
    def text(self) -> str:
        """The line itself, without its indentation."""
        return next(text for number, text in self.lines if number == self.line).strip()


def place(where: str | None) -> tuple[str, int] | None:
    """(path, line) of "path:line"; None where there is no line."""
    path, colon, line = (where or "").rpartition(":")
    return (path, int(line)) if colon and path and line.isascii() and line.isdigit() and int(line) > 0 else None


def excerpt(where: str | None, root: Path, around: int = 0) -> Excerpt | None:
    """The line that a finding names, with so many around it; None where it cannot be read.

    Args:
        where: as a verdict has it, "train.py:12".
        root: the folder from which the script was started.
    """
    found = place(where)
    if found is None:
        return None
    path, line = found
    try:
        file = root / path
        if not file.is_file() or file.stat().st_size > _MOST_BYTES:
            return None
        text = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, ValueError):
        return None
    if line > len(text):
        return None
    first = max(1, line - around)
    shown = text[first - 1 : line + around]
    return Excerpt(path, line, tuple((first + at, _shown(one)) for at, one in enumerate(shown)))


def _shown(line: str) -> str:
    return printable(line.expandtabs(4).rstrip(), most=_MOST_LETTERS)
