"""A figure with its words: shows itself in a notebook, as text where pictures do not show, and to a screen reader."""

from __future__ import annotations

import io
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

DPI = 110


class Picture:
    """A matplotlib figure and a sentence that says what it shows.

    Attributes:
        figure: without pyplot, so that nothing global is kept.
        alt: what it shows, in words, with its numbers.
    """

    def __init__(self, figure: Figure, alt: str) -> None:
        self.figure, self.alt = figure, alt

    def png(self, dpi: float = DPI) -> bytes:
        """The picture as PNG, with `dpi` dots an inch of the figure's size."""
        buffer = io.BytesIO()
        FigureCanvasAgg(self.figure).print_figure(buffer, format="png", dpi=dpi, metadata={"Description": self.alt})
        return buffer.getvalue()

    def save(self, path: Path | str) -> None:
        """Write the PNG."""
        Path(path).write_bytes(self.png())

    def __repr__(self) -> str:
        return self.alt

    def _repr_mimebundle_(self, include=None, exclude=None):
        bundle = {"image/png": self.png(), "text/plain": self.alt}
        return bundle, {"image/png": {"alt": self.alt}}
