"""What a lesson keeps out of the way: a title to click, and below it a noun as it shows itself."""

from __future__ import annotations

from typing import Protocol

from .cards import escape


class Shown(Protocol):
    """A noun with a page of its own: a table, a verdict, a card."""

    def _repr_html_(self) -> str: ...


class Folded:
    """A noun behind a title; a page opens it at a click, and text shows both.

    Args:
        title: what waits below, in a sentence.
        shown: the noun.
    """

    def __init__(self, title: str, shown: Shown) -> None:
        self.title, self.shown = title, shown

    def __repr__(self) -> str:
        return f"{self.title}\n{self.shown!r}"

    def _repr_html_(self) -> str:
        return f"<details><summary>{escape(self.title)}</summary>{self.shown._repr_html_()}</details>"
