"""A sketch as a picture of matplotlib's: for pages that show no SVG, and for files."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle

from .picture import Picture
from .sketch import Box, Line, Mark, Sketch, Words
from .svg import DARK, LIGHT, head_of

POINTS = 0.72
"""Points in a pixel of a hundredth of an inch."""
NARROWER = 0.92
"""matplotlib's font is wider than those of pages: its letters are drawn this much smaller."""

_DASH = {"": "-", "dash": (0, (5, 3)), "dot": (0, (1.5, 2)), "dashdot": (0, (6, 2, 1.5, 2))}
_HATCH = {"": "", "lines": "///", "back": "\\\\\\", "dots": "..", "cross": "++"}
_MARK = {"circle": "o", "diamond": "D", "cross": "x"}


def to_picture(sketch: Sketch, *, dark: bool = False) -> Picture:
    """The sketch as a Picture, in light colours unless told."""
    colours = DARK if dark else LIGHT
    figure = Figure(figsize=(sketch.width / 100, sketch.height / 100), facecolor=colours["ground"])
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, sketch.width)
    axes.set_ylim(sketch.height, 0)
    axes.axis("off")
    for order, shape in enumerate(sketch.shapes, start=1):
        if isinstance(shape, Line):
            _line(axes, shape, colours, order)
        elif isinstance(shape, Box):
            _box(axes, shape, colours, order)
        elif isinstance(shape, Words):
            _words(axes, shape, colours, order)
        else:
            _mark(axes, shape, colours, order)
    return Picture(figure, sketch.alt)


def _line(axes, line: Line, colours: dict[str, str], order: int) -> None:
    x, y = zip(*line.points, strict=True)
    axes.plot(x, y, color=colours[line.pen], linewidth=line.width * POINTS, linestyle=_DASH[line.dash], zorder=order)
    if line.arrow:
        axes.add_patch(Polygon(head_of(line), closed=True, color=colours[line.pen], linewidth=0, zorder=order))


def _box(axes, box: Box, colours: dict[str, str], order: int) -> None:
    place = ((box.x, box.y), max(box.width, 0), max(box.height, 0))
    axes.add_patch(Rectangle(*place, facecolor=colours[box.fill], alpha=box.strength, linewidth=0, zorder=order))
    if box.hatch:
        axes.add_patch(
            Rectangle(*place, fill=False, edgecolor=colours["ground"], hatch=_HATCH[box.hatch], linewidth=0, zorder=order)
        )
    if box.edge:
        axes.add_patch(Rectangle(*place, fill=False, edgecolor=colours[box.edge], linewidth=POINTS, zorder=order))


def _words(axes, words: Words, colours: dict[str, str], order: int) -> None:
    axes.text(
        words.x,
        words.y,
        words.text,
        fontsize=words.size * POINTS * NARROWER,
        color=colours[words.pen],
        ha={"start": "left", "middle": "center", "end": "right"}[words.anchor],
        va="center",
        rotation=90 if words.turned else 0,
        rotation_mode="anchor",
        fontweight="bold" if words.bold else "normal",
        zorder=order,
    )


def _mark(axes, mark: Mark, colours: dict[str, str], order: int) -> None:
    axes.plot(
        [mark.x],
        [mark.y],
        marker=_MARK[mark.kind],
        markersize=(1.7 if mark.kind == "diamond" else 2) * mark.size * POINTS,
        markerfacecolor=colours[mark.pen] if mark.filled else colours["ground"],
        markeredgecolor=colours[mark.pen],
        markeredgewidth=1.6,
        linestyle="",
        zorder=order,
    )
