"""What the presenter alone sees: notes, minutes, and the answers to expect."""

from __future__ import annotations

import re
from html import escape

from docutils import nodes
from sphinx_revealjs.nodes import revealjs_section

from labkit.errors import UsageError

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
    """An answer that the room will give, and what to say to it: the first line, and the rest."""

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
