"""A chart of the theory as a sketch: axes with units, curves by dash and colour, points by mark and word.

Nothing is computed here but where on the page a value lies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..theory.panel import Axis, Chart, Point
from .sketch import Box, Dash, Hatch, Line, Mark, Pen, Shape, Sketch, Words, moved, text_width
from .ticks import said, ticks

WIDTH, PLOT_HEIGHT = 470.0, 225.0
LEFT, RIGHT, BOTTOM = 66.0, 16.0, 46.0
ROW = 16.0
STYLES: tuple[tuple[Pen, Dash], ...] = (("blue", ""), ("orange", "dash"), ("green", "dashdot"), ("purple", "dot"))
MINOR: tuple[tuple[Pen, Dash], ...] = (("soft", "dot"), ("soft", "dash"))
FILLS: tuple[tuple[Pen, Hatch], ...] = (("blue", ""), ("sky", "lines"), ("orange", "dots"), ("yellow", "back"))


@dataclass(frozen=True)
class Place:
    """Where values lie on the page."""

    x: Callable[[float], float]
    y: Callable[[float], float]
    x_ends: tuple[float, float]
    y_ends: tuple[float, float]
    top: float
    bottom: float


def to_sketch(chart: Chart) -> Sketch:
    """Draw a chart."""
    legend, top = _legend(chart)
    bottom = top + PLOT_HEIGHT
    place = _place(chart, top, bottom)
    shapes: list[Shape] = [Words(x=12, y=14, text=chart.title, size=13.5, bold=True), *legend]
    shapes += _axes(chart, place)
    shapes += _bars(chart, place)
    shapes += _spans(chart, place)
    shapes += _curves(chart, place)
    shapes += _points(chart, place)
    return Sketch(WIDTH, bottom + BOTTOM, tuple(shapes), alt_of(chart))


def _ends(axis: Axis, values: Iterable[float]) -> tuple[float, float]:
    if axis.names:
        return -0.5, len(axis.names) - 0.5
    finite = [value for value in values if math.isfinite(value) and (value > 0 or not axis.log)]
    low = axis.low if axis.low is not None else min(finite)
    high = axis.high if axis.high is not None else max(finite)
    if axis.log:
        low = low if axis.low is not None else low / 1.5
        high = high if axis.high is not None else high * 1.5
        return low, high if high > low else low * 10
    return low, high if axis.high is not None else low + (high - low or 1.0) * 1.08


def _scale(axis: Axis, ends: tuple[float, float], begin: float, end: float) -> Callable[[float], float]:
    low, high = (math.log10(each) for each in ends) if axis.log else ends

    def at(value: float) -> float:
        along = math.log10(max(value, 1e-300)) if axis.log else value
        return begin + (end - begin) * min(1.0, max(0.0, (along - low) / (high - low)))

    return at


def _place(chart: Chart, top: float, bottom: float) -> Place:
    xs = [*(x for curve in chart.curves for x in curve.x), *(point.x for point in chart.points)]
    ys = [*(y for curve in chart.curves for y in curve.y), *(point.y for point in chart.points)]
    ys += [sum(heights) for heights in zip(*(bars.heights for bars in chart.bars), strict=True)]
    xs += [span.end for span in chart.spans]
    x_ends, y_ends = _ends(chart.x, xs), _ends(chart.y, ys)
    rows_down = bool(chart.y.names)  # lanes of a timeline read from the top
    y = _scale(chart.y, y_ends, top, bottom) if rows_down else _scale(chart.y, y_ends, bottom, top)
    return Place(_scale(chart.x, x_ends, LEFT, WIDTH - RIGHT), y, x_ends, y_ends, top, bottom)


def _axes(chart: Chart, place: Place) -> list[Shape]:
    shapes: list[Shape] = []
    right_end = -math.inf
    for value, words in ticks(chart.x, *place.x_ends):
        x, half = place.x(value), text_width(words, 11) / 2
        if not chart.x.names:
            shapes.append(Line(points=((x, place.top), (x, place.bottom)), pen="line", width=0.7))
        if x - half > right_end + 4 and x + half < WIDTH - 1:
            shapes.append(Words(x=x, y=place.bottom + 12, text=words, size=11, anchor="middle"))
            right_end = x + half
    for value, words in ticks(chart.y, *place.y_ends):
        y = place.y(value)
        if not chart.y.names:
            shapes.append(Line(points=((LEFT, y), (WIDTH - RIGHT, y)), pen="line", width=0.7))
        shapes.append(Words(x=LEFT - 6, y=y, text=words, size=11, anchor="end"))
    shapes.append(Line(points=((LEFT, place.top), (LEFT, place.bottom), (WIDTH - RIGHT, place.bottom)), pen="soft", width=1))
    shapes.append(Words(x=(LEFT + WIDTH - RIGHT) / 2, y=place.bottom + 32, text=_named(chart.x), size=12, anchor="middle"))
    if chart.y.label:
        shapes.append(
            Words(x=13, y=(place.top + place.bottom) / 2, text=_named(chart.y), size=12, anchor="middle", turned=True)
        )
    return shapes


def _named(axis: Axis) -> str:
    return f"{axis.label}, {axis.unit}" if axis.unit else axis.label


def _curve_styles(chart: Chart) -> list[tuple[Pen, Dash]]:
    major, minor, styles = 0, 0, []
    for curve in chart.curves:
        if curve.minor:
            styles.append(("ink", "dash") if chart.bars else MINOR[minor % len(MINOR)])
            minor += 1
        else:
            styles.append(STYLES[major % len(STYLES)])
            major += 1
    return styles


def _legend(chart: Chart) -> tuple[list[Shape], float]:
    """What stands above the plot, row by row, and where the plot begins."""
    entries: list[tuple[str, list[Shape]]] = []
    for curve, (pen, dash) in zip(chart.curves, _curve_styles(chart), strict=True):
        sample = Line(points=((0, 0), (24, 0)), pen=pen, dash=dash, width=1.3 if curve.minor else 2.4)
        entries.append((curve.label, [sample]))
    for bars, (pen, hatch) in zip(chart.bars, FILLS, strict=False):
        entries.append((bars.label, [Box(x=4, y=-6, width=18, height=12, fill=pen, hatch=hatch)]))
    for kind, (pen, hatch) in _kinds(chart).items():
        entries.append((kind, [Box(x=4, y=-6, width=18, height=12, fill=pen, hatch=hatch)]))
    for point in {(point.label, point.provenance): point for point in chart.points}.values():
        entries.append((f"{point.label} ({point.provenance})", [_mark(point, 12, 0)]))
    shapes: list[Shape] = []
    x, y = 12.0, 34.0
    for words, sample in entries:
        wide = 30 + text_width(words, 11) + 12
        if x > 12 and x + wide > WIDTH:
            x, y = 12.0, y + ROW
        shapes += [moved(shape, x, y) for shape in sample]
        shapes.append(Words(x=x + 30, y=y, text=words, size=11))
        x += wide
    return shapes, (y + 18 if entries else 30)


def _bars(chart: Chart, place: Place) -> list[Shape]:
    shapes: list[Shape] = []
    floors = [0.0] * len(chart.x.names)
    for bars, (pen, hatch) in zip(chart.bars, FILLS, strict=False):
        for at, height in enumerate(bars.heights):
            x, low, high = place.x(at), place.y(floors[at]), place.y(floors[at] + height)
            shapes.append(Box(x=x - 30, y=high, width=60, height=low - high, fill=pen, hatch=hatch))
            floors[at] += height
    shapes += [
        Words(x=place.x(at), y=place.y(total) - 9, text=f"{total:.3g}", size=11, anchor="middle")
        for at, total in enumerate(floors)
        if chart.bars
    ]
    return shapes


def _kinds(chart: Chart) -> dict[str, tuple[Pen, Hatch]]:
    return dict(zip(dict.fromkeys(span.kind for span in chart.spans), FILLS, strict=False))


def _spans(chart: Chart, place: Place) -> list[Shape]:
    shapes: list[Shape] = []
    kinds = _kinds(chart)
    for span in chart.spans:
        pen, hatch = kinds[span.kind]
        left, right, y = place.x(span.begin), place.x(span.end), place.y(span.lane)
        shapes.append(Box(x=left, y=y - 16, width=right - left, height=32, fill=pen, hatch=hatch, edge="ground"))
        if span.text and right - left > text_width(span.text, 11) + 8:
            wide = text_width(span.text, 11) + 6
            shapes.append(Box(x=(left + right - wide) / 2, y=y - 8, width=wide, height=16, fill="ground", strength=0.85))
            shapes.append(Words(x=(left + right) / 2, y=y, text=span.text, size=11, anchor="middle"))
    return shapes


def _curves(chart: Chart, place: Place) -> list[Shape]:
    shapes: list[Shape] = []
    for curve, (pen, dash) in zip(chart.curves, _curve_styles(chart), strict=True):
        stretch: list[tuple[float, float]] = []
        for x, y in [*zip(curve.x, curve.y, strict=True), (math.nan, math.nan)]:
            if math.isfinite(y) and (y > 0 or not chart.y.log):
                stretch.append((place.x(x), place.y(y)))
            elif stretch:
                if len(stretch) > 1:
                    shapes.append(Line(points=tuple(stretch), pen=pen, dash=dash, width=1.3 if curve.minor else 2.4))
                stretch = []
    return shapes


def _mark(point: Point, x: float, y: float) -> Mark:
    """A measured point is a filled diamond; where the sliders stand is an open circle; what is to compare with a cross."""
    if point.aside:
        return Mark(x=x, y=y, kind="cross", pen="soft")
    if point.provenance == "simulated":
        return Mark(x=x, y=y, kind="circle", pen="ink", filled=False)
    return Mark(x=x, y=y, kind="diamond", pen="red", filled=True)


def _points(chart: Chart, place: Place) -> list[Shape]:
    drawn = [point for point in chart.points if math.isfinite(point.x) and math.isfinite(point.y)]
    drawn.sort(key=lambda point: point.provenance != "simulated")  # what was measured is never covered
    return [_mark(point, place.x(point.x), place.y(point.y)) for point in drawn]


def alt_of(chart: Chart) -> str:
    """What the chart shows, in words: its axes, its curves from end to end, its points and their sources."""
    x, y = _named(chart.x), _named(chart.y)
    parts = [f"{chart.title}: {y or 'lanes'} against {x}."]
    for curve in chart.curves:
        ends = [(curve.x[0], curve.y[0]), (curve.x[-1], curve.y[-1])]
        way = " to ".join(f"{said(chart.y, b)} at {said(chart.x, a)}" for a, b in ends)
        parts.append(f"{curve.label} (simulated): from {way}.")
    for at, name in enumerate(chart.x.names):
        layers = ", ".join(f"{bars.label} {bars.heights[at]:.3g}" for bars in chart.bars)
        parts.append(f"{name}: {layers} {chart.y.unit} (simulated).")
    for kind in _kinds(chart):
        of_kind = [span for span in chart.spans if span.kind == kind]
        last = max(span.end for span in of_kind)
        parts.append(
            f"{kind} (simulated): {len(of_kind)}, the last ends at {said(chart.x, last)} {chart.x.unit}".rstrip() + "."
        )
    for point in chart.points:
        where = f"{said(chart.y, point.y)} at {said(chart.x, point.x)}"
        parts.append(f"{point.label} ({point.provenance}): {where}.")
    return " ".join(parts)
