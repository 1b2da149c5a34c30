"""Paragraphs in a terminal, indented, without anything beside the words: no frame, and no spaces at the end of a line.

Such text can be copied, piped to a file and read aloud as it stands.
"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

WIDTH = 100
"""Columns that a paragraph takes at most: longer lines are hard to read."""


def paragraph(console: Console, text: Text | str, *, left: int = 0, first: Text | str = "", width: int = WIDTH) -> None:
    """Print a paragraph, broken between words.

    Args:
        left: columns before each line.
        first: takes the place of those before the first line; one that is wider begins further to the right there.
        width: columns at most, those before a line included; never more than the terminal has.
    """
    text = Text(text) if isinstance(text, str) else text
    lead = Text(first) if isinstance(first, str) else first
    lead.pad_right(max(0, left - lead.cell_len))
    room = max(20, min(width, console.width) - max(left, lead.cell_len))
    lines = text.wrap(console, room)
    for number, line in enumerate(lines):
        line.rstrip()
        console.print(Text.assemble(lead if number == 0 else " " * lead.cell_len, line), soft_wrap=True)


def code(console: Console, text: Text | str, *, left: int = 0) -> None:
    """Print lines of code, which are never broken."""
    text = Text(text) if isinstance(text, str) else text
    for line in text.split("\n", allow_blank=False):
        console.print(Text.assemble(" " * left, line), soft_wrap=True)
