"""What all blocks of a deck share: the deck's records, and errors that name the place."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from labkit.errors import LabkitError, UsageError

from .records import Records


class RecordsFailed(UsageError):
    """The deck's records could not be had, which was said where they were asked for: nothing more to say."""


class DeckDirective(SphinxDirective):
    """A directive that reads records; what is wrong with it is an error of the build that names file and line."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        try:
            return self.draw()
        except RecordsFailed:
            return []
        except LabkitError as error:
            raise self.error(f"{self.name}: {error}") from None

    def draw(self) -> list[nodes.Node]:
        raise NotImplementedError

    @property
    def records(self) -> Records:
        return records_of(self.env)

    def argument(self) -> str:
        if not self.arguments:
            raise UsageError(f"{self.name} wants a name after it")
        return self.arguments[0].strip()


def records_of(env: Any) -> Records:
    if "deck_records" not in env.current_document:
        raise UsageError("the deck has declared no records yet; begin it with a lab-records block")
    if env.current_document["deck_records"] is None:
        raise RecordsFailed
    return env.current_document["deck_records"]


def raw(html: str) -> nodes.raw:
    """HTML as it stands."""
    return nodes.raw("", html, format="html")
