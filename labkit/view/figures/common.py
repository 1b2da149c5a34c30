"""What all figures share: the check of their arguments, the axes, the line of provenance."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from matplotlib.figure import Figure

from ...errors import UsageError
from ...record.schema import Record
from .. import palette
from ..picture import Picture, as_plain_text, boxes_for_missing_glyphs

LETTERS_AN_INCH = 16
"""Of the line of provenance, at the most: in a narrow figure it takes several lines."""


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


def finish(figure: Figure, records: Sequence[Record], alt: str, *, top: float) -> Picture:
    labels = list(dict.fromkeys(record.provenance.label() for record in records))
    height = figure.get_figheight()
    lines = [line for label in labels for line in textwrap.wrap(label, int(LETTERS_AN_INCH * figure.get_figwidth()))]
    figure.text(0.01, 0.06 / height, "\n".join(lines), fontsize=7.5, color=palette.GREY, va="bottom")
    bottom = (0.12 + 0.13 * len(lines)) / height
    as_plain_text(figure)
    with boxes_for_missing_glyphs():
        figure.tight_layout(rect=(0, bottom, 1, top))
    return Picture(figure, alt + f" ({'; '.join(labels)})")
