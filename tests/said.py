"""Every number that is said in words beside a figure stands in the figure; one name has one value, wherever it is said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axis import Axis
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter, FixedLocator

import labkit
from labkit.detect.meanings import meaning_of
from labkit.errors import UsageError
from labkit.record.schema import Record
from labkit.view.picture import Picture

NUMBER = re.compile(r"(?<![\w.,^-])[-+]?(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(e[-+]?\d+)?(?![\w]|[.,]\d)( ?%)?")
"""A number that is no part of a name: "4.92", "1,797", "97.5 %", "2e-07"; not the 32 of fp32."""

MANY = 60
"""Points of a line or a cloud that count one by one; of more, the first, the last, the lowest and the highest."""


def numbers(text: str) -> list[tuple[float, float]]:
    """(value, half of its last digit's worth) of each number in a text; a percentage is a share."""
    found = []
    for match in NUMBER.finditer(text):
        _, fraction, exponent, percent = match.groups()
        scale = (0.01 if percent else 1.0) * 10.0 ** int((exponent or "e0")[1:])
        digits = len(fraction) - 1 if fraction else 0
        value = float(match.group(0).replace(",", "").removesuffix("%").strip())
        found.append((value * (0.01 if percent else 1.0), 0.5 * 10.0**-digits * scale * (1 + 1e-6)))
    return found


def not_held(picture: Picture) -> list[str]:
    """Numbers of the alt text, without its provenance, that no artist of the figure holds as text or in its data."""
    said = picture.alt.rpartition(" (")[0]
    texts, data = set(), np.abs(sorted(set(_data(picture.figure))))
    for text in _texts(picture.figure):
        texts.update(match.group(0).replace(" ", "") for match in NUMBER.finditer(text))
    missing = []
    for match in NUMBER.finditer(said):
        ((value, half),) = numbers(match.group(0))
        near = [
            np.abs(data / scale - value).min(initial=np.inf) <= half
            for scale in ((1, 100) if "%" in match.group(0) else (1,))
        ]
        if match.group(0).replace(" ", "") not in texts and not any(near):
            missing.append(match.group(0))
    return missing


def _texts(figure: Figure) -> Iterator[str]:
    """What is written, but for the numbers that an axis chose for its ticks, among which small ones always are."""
    chosen = {id(label) for axis in figure.axes for one in (axis.xaxis, axis.yaxis) for label in _ticks(one)}
    for text in figure.findobj(Text):
        if isinstance(text, Text) and text.get_visible() and id(text) not in chosen:
            yield text.get_text()
    for axis in figure.axes:  # words given to ticks, some of which matplotlib makes only when it draws
        for one in (axis.xaxis, axis.yaxis):
            if isinstance(one.get_major_locator(), FixedLocator):
                yield from (label.get_text() for label in one.get_ticklabels())


def _ticks(axis: Axis) -> list[Text]:
    if isinstance(axis.get_major_formatter(), FixedFormatter):
        return []
    return [label for tick in (*axis.majorTicks, *axis.minorTicks) for label in (tick.label1, tick.label2)]


def _data(figure: Figure) -> Iterator[float]:
    """Where artists begin and end, and how long they are."""
    for axis in figure.axes:
        for artist in axis.get_children():
            for values in _of(artist):
                flat = np.asarray(values, dtype=float).ravel()
                flat = flat[np.isfinite(flat)]
                if len(flat) > MANY:
                    flat = np.array([flat[0], flat[-1], flat.min(), flat.max()])
                yield from flat.tolist()


def _of(artist: Artist) -> Iterable[object]:
    if isinstance(artist, Line2D):
        return artist.get_xdata(), artist.get_ydata()
    if isinstance(artist, Rectangle):
        x, y, width, height = *artist.get_xy(), artist.get_width(), artist.get_height()
        return [x, x + width, width, x + width / 2, y, y + height, height]
    if isinstance(artist, Patch):
        path = artist.get_path().vertices
        return path[:, 0], path[:, 1], [np.ptp(path[:, 0])]
    if isinstance(artist, Collection):
        offsets = np.ma.filled(artist.get_offsets(), np.nan)
        paths = [np.asarray(path.vertices) for path in artist.get_paths()] if len(offsets) <= 1 else []
        return [offsets[:, 0], offsets[:, 1], *(p[:, 0] for p in paths), *([np.ptp(p[:, 0])] for p in paths)]
    return ()


def unheld(record: Record) -> list[str]:
    """What the figures of a record's lab say in words and do not show, a line each."""
    lab, found = labkit.lab(record.lab), []
    for name in lab.spec.figures:
        try:
            picture = lab.figure(name, record)
        except UsageError:
            continue  # the record does not hold what this figure draws
        found += [f"{name}: {number} is said and not drawn: {picture.alt}" for number in not_held(picture)]
    return found


def two_values(record: Record) -> list[str]:
    """Names under which measures and verdicts say two different numbers of one unit, a line each."""
    lab = labkit.lab(record.lab)
    known, found = {name: ("the measures", quantity) for name, quantity in lab.measures(record).items()}, []
    for verdict in lab.judge(record):
        for name, quantity in verdict.evidence.items():
            where, other = known.setdefault(name, (verdict.detector, quantity))
            same_unit = quantity.unit.split(",")[0] == other.unit.split(",")[0]
            if same_unit and quantity.value != other.value:
                found.append(f"{name} is {other} in {where} and {quantity} in {verdict.detector}")
    return found


def unmeant(record: Record) -> list[str]:
    """Measures of a record that nobody says in words what they are."""
    return [name for name in labkit.lab(record.lab).measures(record) if not meaning_of(name)]
