"""What the presenter alone sees: notes, minutes, and the answers to expect."""

from __future__ import annotations

import re
from html import escape

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx_revealjs.nodes import revealjs_section

from labkit.errors import UsageError
from labkit.facts.guesses import markdown_of

from .base import DeckDirective, raw


class Notes(DeckDirective):
    """Speaker notes. The minutes pace the presenter's clock, and add up to the deck's."""

    def draw(self) -> list[nodes.Node]:
        given = self.argument()
        minutes = float(given) if re.fullmatch(r"\d+(\.\d+)?", given) else 0.0
        if not 0 < minutes <= 30:
            raise UsageError(f"notes wants its minutes, above 0 and at most 30; given {given!r}")
        aside = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, aside)
        said = f"{minutes:g} minute{'s' * (minutes != 1)}"
        attributes = {"data-timing": f"{60 * minutes:.0f}", "data-minutes": f"{minutes:g}"}
        return [
            revealjs_section("", **attributes),
            raw(f'<aside class="notes"><p><strong>{said}</strong></p>'),
            *aside.children,
            raw("</aside>"),
        ]


class Expects(DeckDirective):
    """An answer that the room will give, and what to say to it: the first line, and the rest.

    The options are for the lesson: the number that stands for the answer, and when it would be right.
    """

    option_spec = {"guess": directives.unchanged, "if": directives.unchanged}

    def draw(self) -> list[nodes.Node]:
        answer = self.argument()
        if not self.content:
            raise UsageError(f"expects {answer!r} wants what to say to it, below")
        reply = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, reply)
        return [
            raw(f'<div class="expects"><p><strong>Expect:</strong> “{escape(answer)}”</p>'),
            *reply.children,
            raw("</div>"),
        ]


class ExpectedIn(DeckDirective):
    """All answers to expect in a lesson, out of the file that the lesson reads too."""

    def draw(self) -> list[nodes.Node]:
        lines = markdown_of(self.argument()).splitlines()
        found = nodes.container()
        self.state.nested_parse(StringList(lines, f"guesses of {self.argument()}"), self.content_offset, found)
        return [*found.children]
