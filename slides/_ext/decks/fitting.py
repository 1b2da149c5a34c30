"""A lab's figure at the size of a slide: letters that the last row can read."""

from __future__ import annotations

import math
from itertools import pairwise

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from labkit.view.picture import Picture

SLIDE_PX = (1280, 720)
"""Width and height of a slide; everything below is in its pixels, whatever the projector's are."""

LEAST_PX = 16.0
"""Height that the smallest letters of a figure are set to: 2.2 % of the slide's."""

MARGIN_PX = 56
"""Free at the left and at the right of a slide, as deck.css has it."""

HEIGHT_PX = 570
"""Of a figure that has a slide to itself, below a title of one line."""

PX_PER_INCH = 140.0
"""At this scale the 9 points of most labels are 17 pixels."""


def fit(picture: Picture, *, width_px: float, height_px: float, px_per_inch: float = PX_PER_INCH) -> None:
    """Lay a figure out anew so that it fills a box on the slide.

    Args:
        picture: changed in place.
        width_px, height_px: of the box.
        px_per_inch: the scale; larger means larger letters, and less room for what they label.
    """
    figure = picture.figure
    figure.set_size_inches(width_px / px_per_inch, height_px / px_per_inch)
    least_points = LEAST_PX / px_per_inch * 72
    _grow(figure, least_points)
    _lay_out(figure)
    _wrap_labels(figure)
    _lay_out(figure)
    _thin_ticks(figure)
    _grow(figure, least_points)  # ticks that are new have the size of matplotlib's own


def _grow(figure, least_points: float) -> None:
    for text in figure.findobj(Text):
        if text.get_text() and float(text.get_fontsize()) < least_points:
            text.set_fontsize(least_points)


def _lay_out(figure) -> None:
    """Room again for what has grown: the line of provenance at the foot, a legend at the head, the axes between them."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    whole = figure.bbox.height
    for text in figure.texts:
        text.set_y(4 / whole)
    foot = max((text.get_window_extent(renderer).height for text in figure.texts), default=0.0)
    head = max((legend.get_window_extent(renderer).height for legend in figure.legends), default=0.0)
    figure.tight_layout(rect=(0, (foot + 10) / whole if foot else 0, 1, 1 - head / whole))


def _wrap_labels(figure) -> None:
    """A title, and the label of an axis, breaks into lines where it is longer than its axes."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    for axes in figure.axes:
        width, height = axes.bbox.width, axes.bbox.height
        texts = [*(child for child in axes.get_children() if isinstance(child, Text)), axes.xaxis.label]
        for text, room in [*((text, width) for text in texts if text not in axes.texts), (axes.yaxis.label, height)]:
            extent = text.get_window_extent(renderer)
            length = extent.height if text is axes.yaxis.label else extent.width  # of the longest line
            lines = text.get_text().split("\n")
            most = max(len(line) for line in lines)
            shares = [length * len(line) / (most or 1) / room for line in lines]
            if any(share > 1.04 for share in shares):
                broken = (_broken(line, math.ceil(share - 0.04)) for line, share in zip(lines, shares, strict=True))
                text.set_text("\n".join(broken))


def _broken(said: str, lines: int) -> str:
    """A sentence in lines about equally long; where it has a dot between its parts, there."""
    parts = [part.strip() for part in said.split("·")]
    if len(parts) == lines:
        return "\n".join(parts)
    broken, rest = [], said
    for left in range(lines, 1, -1):
        middle = len(rest) / left
        spaces = [at for at, letter in enumerate(rest) if letter == " "]
        at = min(spaces, key=lambda at: abs(at - middle), default=len(rest))
        broken.append(rest[:at].strip())
        rest = rest[at:].strip()
    return "\n".join(line for line in [*broken, rest] if line)


def _thin_ticks(figure) -> None:
    """Fewer ticks where the numbers below an axis would run into each other."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    for axes in figure.axes:
        for most in (7, 6, 5, 4, 3):
            boxes = [label.get_window_extent(renderer) for label in axes.get_xticklabels() if label.get_text()]
            boxes = sorted(boxes, key=lambda box: box.x0)
            gap = 8 * figure.dpi / 100
            close = any(b.x0 < a.x1 + gap for a, b in pairwise(boxes))
            if not close or not isinstance(axes.xaxis.get_major_locator(), MaxNLocator):
                break
            integers = getattr(axes.xaxis.get_major_locator(), "_integer", False)
            axes.xaxis.set_major_locator(MaxNLocator(most, integer=integers))
