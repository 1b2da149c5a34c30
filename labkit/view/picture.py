"""A figure with its words: shows itself in a notebook, as text where pictures do not show, and to a screen reader."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter

from ..words import printable
from .dark import MARK

DPI = 110
LONGEST = 300
"""Letters of a line of text in a figure; what is longer is cut."""
MOST_LINES = 40
"""Of one text in a figure; those that follow are left out."""


class Picture:
    """A matplotlib figure and a sentence that says what it shows.

    Attributes:
        figure: without pyplot, so that nothing global is kept.
        alt: what it shows, in words, with its numbers.
    """

    def __init__(self, figure: Figure, alt: str) -> None:
        self.figure, self.alt = figure, alt
        as_plain_text(figure)

    def png(self, dpi: float = DPI) -> bytes:
        """The picture as PNG, with `dpi` dots an inch of the figure's size."""
        buffer, before = io.BytesIO(), self.figure.get_dpi()
        try:
            self.figure.set_dpi(dpi)
            with boxes_for_missing_glyphs():
                # `savefig` would draw twice: once more in case that a layout still has to be found
                FigureCanvasAgg(self.figure).print_png(buffer, metadata={"Description": self.alt})
        finally:
            self.figure.set_dpi(before)
        return buffer.getvalue()

    def save(self, path: Path | str) -> None:
        """Write the PNG."""
        Path(path).write_bytes(self.png())

    def __repr__(self) -> str:
        return self.alt

    def _repr_mimebundle_(self, include=None, exclude=None):
        bundle = {"image/png": self.png(), "text/plain": self.alt}
        return bundle, {"image/png": {"alt": self.alt}, **MARK}


def as_plain_text(figure: Figure) -> None:
    """Show names as they are: a dollar in one begins no formula, and a long one is cut.

    Labels of ticks are left to matplotlib, which writes powers of ten as formulas, unless they were given as words.
    """
    axes = [axis for one in figure.axes for axis in (one.xaxis, one.yaxis)]
    of_ticks = {label for axis in axes for label in axis.get_ticklabels(which="both")}
    for text in figure.findobj(Text):
        if isinstance(text, Text) and text not in of_ticks and text.get_text():
            text.set_parse_math(False)
            text.set_text(_shown(text.get_text()))
    for axis in axes:
        words = axis.get_major_formatter()
        if isinstance(words, FixedFormatter):
            words.seq = [_shown(word).replace(r"\$", "$").replace("$", r"\$") for word in words.seq]


def _shown(text: str) -> str:
    return "\n".join(printable(line, most=LONGEST) for line in text.split("\n")[:MOST_LINES])


@contextlib.contextmanager
def boxes_for_missing_glyphs() -> Iterator[None]:
    """Let a letter that the font lacks be drawn as a box, without a warning for each."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        yield
