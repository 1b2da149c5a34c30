"""A lab's figure at the size of a slide: letters that the last row can read."""

from __future__ import annotations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from labkit.view.picture import Picture

SLIDE_PX = (1280, 720)
"""Width and height of a slide; everything below is in its pixels, whatever the projector's are."""

LEAST_PX = 16.0
"""Height that the smallest letters of a figure are set to: 2.2 % of the slide's."""


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
    for text in figure.findobj(Text):
        if text.get_text() and text.get_fontsize() < least_points:
            text.set_fontsize(least_points)
    _lay_out(figure)


def _lay_out(figure) -> None:
    """Room again for what has grown: the line of provenance at the foot, a legend at the head, the axes between them."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    whole = figure.bbox.height
    for text in figure.texts:
        text.set_y(4 / whole)
    foot = max((text.get_window_extent(renderer).height for text in figure.texts), default=0.0)
    head = max((legend.get_window_extent(renderer).height for legend in figure.legends), default=0.0)
    figure.tight_layout(rect=(0, (foot + 10) / whole if foot else 0, 1, 1 - head / whole))
