"""Tables of words: as a card in a notebook, as a table in a terminal."""

from __future__ import annotations

from rich.table import Table as RichTable
from rich.text import Text

from ..record.table import Table
from .cards import SMALL, box, escape


def table_card(table: Table) -> str:
    """A table as a card."""
    cell = "padding:.1em .7em;text-align:"
    sides = ["left" if at in table.left else "right" for at in range(len(table.columns))]

    def row(words: tuple[str, ...], tag: str) -> str:
        cells = (f"<{tag} style='{cell}{side}'>{escape(word)}</{tag}>" for word, side in zip(words, sides, strict=True))
        return f"<tr>{''.join(cells)}</tr>"

    notes = "".join(f"<div style='{SMALL}'>{escape(note)}</div>" for note in table.notes)
    body = row(table.columns, "th") + "".join(row(words, "td") for words in table.rows)
    return box(f"<strong>{escape(table.title)}</strong><div style='overflow-x:auto'><table>{body}</table></div>{notes}")


def in_terminal(table: Table) -> list[RichTable | Text]:
    """A table and its notes, to print."""
    drawn = RichTable(box=None, pad_edge=False, title=Text(table.title), title_justify="left")
    for at, name in enumerate(table.columns):
        drawn.add_column(Text(name), justify="left" if at in table.left else "right")
    for row in table.rows:
        drawn.add_row(*map(Text, row))
    return [drawn, *(Text(note, style="dim") for note in table.notes)]
