"""A table as plain words: what a lab shows of a record beside its measures. How it looks is the view's affair."""

from __future__ import annotations

from dataclasses import dataclass

from ..showing import as_html


@dataclass(frozen=True)
class Table:
    """Rows of words under headings.

    Attributes:
        title: what it is.
        columns: headings; the first names the rows.
        rows: as many words as there are columns.
        notes: lines below it: sources, and what is missing.
        left: columns that begin at the left; numbers end at the right.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    left: tuple[int, ...] = (0,)

    def __repr__(self) -> str:
        widths = [max(len(row[at]) for row in (self.columns, *self.rows)) for at in range(len(self.columns))]
        lines = [self.title]
        for row in (self.columns, *self.rows):
            sized = enumerate(zip(row, widths, strict=True))
            words = (word.ljust(width) if at in self.left else word.rjust(width) for at, (word, width) in sized)
            lines.append("  ".join(words).rstrip())
        return "\n".join([*lines, *self.notes])

    _repr_html_ = as_html
