"""The widget in the page, from the kernel's side: what it is told, and what it asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anywidget

from ...record.follow import Look
from .kinds import kinds
from .parts import module, style
from .whole import Whole, as_bytes, thinned

MOST_A_LOOK = 400
"""Steps, and losses, that one look sends."""


class LiveView(anywidget.AnyWidget):
    """Lanes, loss and words of one run, and of a pinned one beside it.

    All that is sent is numbers and text; the page shows text as text. Everything shown can be sent again: a page that is
    opened anew asks for it.

    Args:
        on_ask: called with what a reader asks for by a key: "run", "stop".
    """

    _esm = module()
    _css = style()

    def __init__(self, on_ask: Callable[[str], None] | None = None) -> None:
        super().__init__()
        self._on_ask = on_ask
        self._begun: dict[str, Any] | None = None
        self._wholes: dict[str, Whole] = {}
        self._words: list[str] = []
        self.on_msg(self._asked)

    def begin(self, ranks: int, title: str) -> None:
        """Show empty lanes for a run that starts."""
        self._begun = {"type": "begin", "ranks": ranks, "title": title}
        self._wholes.pop("now", None)
        self.send(self._begun)

    def show(self, look: Look, now_ms: float) -> None:
        """Add what is new.

        Args:
            now_ms: the ranks' clock, from the origin of the look's times.
        """
        content = {
            "type": "delta",
            "now": now_ms,
            "kinds": kinds(look.names),
            "counters": {str(rank): found for rank, found in look.counters.items()},
            "dark": [[one.rank, one.start_ms, one.end_ms, one.word] for one in look.dark],
            "left_out": look.left_out_bytes > 0,
        }
        steps, losses = thinned(look.steps, MOST_A_LOOK), thinned(look.losses, MOST_A_LOOK)
        self.send(content, [as_bytes(look.spans), as_bytes(steps), as_bytes(losses)])

    def finish(self, whole: Whole | None, said: str) -> None:
        """Show a whole run; None where the run gave none, and what is drawn stays."""
        self._begun = None
        if whole is not None:
            self._wholes["now"] = whole
            self.send(*whole.message("now"))
        self.send({"type": "end", "said": said})

    def pin(self, whole: Whole | None) -> None:
        """Lay a run beneath the one that is shown; None takes it away."""
        self._wholes.pop("pinned", None)
        if whole is None:
            self.send({"type": "unpin"})
            return
        self._wholes["pinned"] = whole
        self.send(*whole.message("pinned"))

    def say(self, sentences: Sequence[str]) -> None:
        """Say how the two runs differ."""
        self._words = list(sentences)
        self.send({"type": "words", "sentences": self._words})

    def _asked(self, _widget: Any, content: Any, _buffers: Any) -> None:
        ask = content.get("ask") if isinstance(content, dict) else None
        if ask == "hello":
            self._again()
        elif ask == "window" and content.get("side") in self._wholes:
            start, end = float(content["from"]), float(content["to"])
            self.send(*self._wholes[content["side"]].window(content["side"], start, end))
        elif ask in ("run", "stop") and self._on_ask is not None:
            self._on_ask(ask)

    def _again(self) -> None:
        """For a page that was opened anew."""
        if self._begun is not None:
            self.send(self._begun)
        for side, whole in self._wholes.items():
            self.send(*whole.message(side))
        if self._words:
            self.send({"type": "words", "sentences": self._words})
