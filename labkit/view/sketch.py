"""A drawing as a list of shapes, in pixels from the upper left: drawn as SVG for light and dark, and as a PNG.

Colours are pens, not values: `svg.py` and `sketch_png.py` say what each is. What a colour tells, a hatch, a dash or a word
tells as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Pen = Literal["ink", "soft", "line", "ground", "panel", "blue", "orange", "green", "purple", "sky", "yellow", "red"]
Hatch = Literal["", "lines", "back", "dots", "cross"]
Dash = Literal["", "dash", "dot", "dashdot"]
MarkKind = Literal["circle", "diamond", "cross"]


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line through points; with an arrow's head at its end if asked."""

    points: tuple[tuple[float, float], ...]
    pen: Pen = "ink"
    width: float = 1.5
    dash: Dash = ""
    arrow: bool = False


@dataclass(frozen=True, kw_only=True)
class Box:
    """A rectangle. `strength` is how opaque the fill is; its edge is drawn in full."""

    x: float
    y: float
    width: float
    height: float
    fill: Pen = "panel"
    edge: Pen | None = None
    hatch: Hatch = ""
    strength: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Words:
    """A line of text; `y` is its middle."""

    x: float
    y: float
    text: str
    size: float = 12
    anchor: Literal["start", "middle", "end"] = "start"
    bold: bool = False
    pen: Pen = "ink"
    turned: bool = False


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A mark of a point: filled, or an outline."""

    x: float
    y: float
    kind: MarkKind = "circle"
    pen: Pen = "ink"
    filled: bool = True
    size: float = 5.5


Shape = Line | Box | Words | Mark


@dataclass(frozen=True)
class Sketch:
    """Shapes on a ground of a size.

    Attributes:
        width, height: in pixels.
        shapes: in the order in which they are drawn.
        alt: what is drawn, in words.
    """

    width: float
    height: float
    shapes: tuple[Shape, ...]
    alt: str


LETTER = 0.6
"""Width of an average letter, as a share of its size; the fonts of a page differ, so there is some room in it."""


def text_width(text: str, size: float) -> float:
    """About how wide a line of text is, in pixels."""
    return LETTER * size * len(text)


def wrapped(text: str, width: float, size: float) -> list[str]:
    """A text in lines that fit into a width."""
    import textwrap

    return textwrap.wrap(text, max(8, int(width / (LETTER * size))))


def paragraph(text: str, x: float, y: float, width: float, *, size: float = 12, pen: Pen = "ink") -> list[Words]:
    """A text in lines from an upper left corner."""
    lines = wrapped(text, width, size)
    return [Words(x=x, y=y + (0.7 + 1.35 * n) * size, text=line, size=size, pen=pen) for n, line in enumerate(lines)]


def moved(shape: Shape, dx: float, dy: float) -> Shape:
    """A shape elsewhere."""
    if isinstance(shape, Line):
        return replace(shape, points=tuple((x + dx, y + dy) for x, y in shape.points))
    return replace(shape, x=shape.x + dx, y=shape.y + dy)


def beside(sketches: Sequence[Sketch], below: Iterable[str] = ()) -> Sketch:
    """Sketches in a row, with lines of text under them."""
    width, height = sum(s.width for s in sketches), max(s.height for s in sketches)
    shapes: list[Shape] = []
    left = 0.0
    for sketch in sketches:
        shapes += [moved(shape, left, 0) for shape in sketch.shapes]
        left += sketch.width
    for text in below:
        lines = paragraph(text, 12, height + 4, width - 24, size=11, pen="soft")
        shapes += lines
        height = lines[-1].y + 8 if lines else height
    return Sketch(width, height + 6, tuple(shapes), " ".join(sketch.alt for sketch in sketches))
