"""What all figures share: the check of their arguments, the axes, the line of provenance."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from ...errors import UsageError
from ...record.schema import Record
from .. import palette
from ..picture import Picture, as_plain_text, boxes_for_missing_glyphs

LETTERS_AN_INCH = 16
"""Of the line of provenance, at the most: in a narrow figure it takes several lines."""

LETTER_POINTS = 118
"""Letters of one point in an inch of a title in bold type: an average letter is 0.61 of its height wide."""


def need(records: Sequence[Record]) -> None:
    if not records:
        raise UsageError("a figure needs at least one record, as in lab.figure('loss', record)")


def side_by_side(records: Sequence[Record], *, width: float, height: float):
    figure = Figure(figsize=(width * min(len(records), 2) if len(records) > 1 else width * 1.6, height))
    axes = figure.subplots(1, len(records), squeeze=False)[0]
    return figure, axes


def plain_axes(*axes) -> None:
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)


def legend_above(figure: Figure, handles: Sequence, labels: Sequence[str], *, columns: int = 4) -> float:
    """A legend over all axes, in as few rows as its words allow; returns the share of the height that is left for axes."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    for ncols in range(min(columns, len(labels)), 0, -1):
        legend = figure.legend(handles, labels, loc="upper center", ncols=ncols, frameon=False, fontsize=8.5)
        as_plain_text(figure)
        size = legend.get_window_extent(renderer)
        if size.width <= figure.bbox.width or ncols == 1:
            break
        legend.remove()
    return 1 - size.height / figure.bbox.height


def legend_over(axis: Axes, *, letters: int = 60) -> None:
    """A legend over one axes, an entry a line, where it covers nothing that is drawn; long entries take several lines."""
    handles, labels = axis.get_legend_handles_labels()
    wrapped = [textwrap.fill(label, letters, subsequent_indent="  ") for label in labels]
    axis.legend(handles, wrapped, frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)


def _wrap_titles(figure: Figure) -> bool:
    """Break the titles that are wider than their axes into lines; says whether one was."""
    changed = False
    for axis in figure.axes:
        inches = axis.get_position().width * figure.get_figwidth()
        for title in filter(Text.get_text, (axis.title, axis._left_title, axis._right_title)):  # pyright: ignore
            letters = max(8, int(inches * LETTER_POINTS / float(title.get_fontsize())))
            wrapped = "\n".join(textwrap.fill(line, letters) for line in title.get_text().split("\n"))
            changed |= wrapped != title.get_text()
            title.set_text(wrapped)
    return changed


def finish(figure: Figure, records: Sequence[Record], alt: str, *, top: float) -> Picture:
    labels = list(dict.fromkeys(record.provenance.label() for record in records))
    height = figure.get_figheight()
    lines = [line for label in labels for line in textwrap.wrap(label, int(LETTERS_AN_INCH * figure.get_figwidth()))]
    figure.text(0.01, 0.06 / height, "\n".join(lines), fontsize=7.5, color=palette.GREY, va="bottom")
    bottom = (0.12 + 0.13 * len(lines)) / height
    as_plain_text(figure)
    with boxes_for_missing_glyphs():
        figure.tight_layout(rect=(0, bottom, 1, top))
        if _wrap_titles(figure):
            figure.tight_layout(rect=(0, bottom, 1, top))
    return Picture(figure, alt + f" ({'; '.join(labels)})")
