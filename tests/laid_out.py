"""Whether the words of a figure can be read: legends and titles lie inside it, and no legend covers a bar."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.patches import Rectangle
from matplotlib.text import Text

SLACK = 3.0
"""Dots by which an extent may pass an edge: rounding, and the white around letters."""


def faults_of(figure: Figure) -> list[str]:
    """What of a finished figure's legends and titles is cut off by its edge, or lies over bars; in words."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    found = []
    for what, artist in _words(figure):
        box = artist.get_window_extent(renderer)
        if box.x0 < -SLACK or box.x1 > figure.bbox.width + SLACK or box.y1 > figure.bbox.height + SLACK:
            found.append(f"{what} is cut off by the edge")
    for axis in figure.axes:
        legend = axis.get_legend()
        if legend is None:
            continue
        letters = [text.get_window_extent(renderer) for text in legend.get_texts()]
        bars = [patch.get_window_extent(renderer) for patch in axis.patches if isinstance(patch, Rectangle)]
        if any(text.overlaps(bar) for text in letters for bar in bars if bar.width > 1 and bar.height > 1):
            found.append(f"the legend {_said(legend)} lies over bars")
    return found


def _words(figure: Figure) -> Iterator[tuple[str, Legend | Text]]:
    for legend in [*figure.legends, *filter(None, (axis.get_legend() for axis in figure.axes))]:
        yield f"the legend {_said(legend)}", legend
    titles = [text for axis in figure.axes for text in (axis.title, axis._left_title, axis._right_title)]
    for text in [*figure.texts, *titles]:
        if text.get_text() and text.get_visible():
            yield f"the text {text.get_text()[:60]!r}", text


def _said(legend: Legend) -> str:
    return repr([text.get_text()[:40] for text in legend.get_texts()][:4])
