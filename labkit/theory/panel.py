"""What a reader may move, and what follows: sliders, and charts made of arrays. No drawing here, and no record.

A panel is a formula that can be asked at many settings. Its curves are `simulated`: the panel names the formula and where
it is from. A point that was measured is laid on them by whoever has a record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ..errors import UnknownName, UsageError

Provenance = Literal["measured", "recorded", "simulated", "quoted"]


@dataclass(frozen=True, kw_only=True)
class Slider:
    """One thing that a reader moves, stop by stop.

    Attributes:
        name: the key in the settings.
        label: what it is, in a few words, with its letter where the formula has one.
        unit: of its values; empty for a count or a share.
        stops: the values that it can take, ascending; of words, a menu.
        value: where it begins, one of the stops.
    """

    name: str
    label: str
    unit: str
    stops: tuple[Any, ...]
    value: Any

    def __post_init__(self) -> None:
        if self.value not in self.stops:
            raise UsageError(f"{self.name} begins at {self.value!r}, which is none of its stops")

    @property
    def is_menu(self) -> bool:
        """Whether its stops are words."""
        return isinstance(self.stops[0], str)

    def at(self, value: Any) -> Slider:
        """The same slider, standing at a value; a number between its stops becomes a stop of its own.

        Raises:
            UsageError: a word that is no stop, or a number outside of the range.
        """
        if value in self.stops:
            return replace(self, value=self.stops[self.stops.index(value)])
        if self.is_menu or isinstance(value, (str, bool)) or not isinstance(value, (int, float)):
            raise UnknownName(self.name, value, map(str, self.stops))
        if not math.isfinite(value) or value <= 0 < self.stops[0]:
            raise UsageError(f"{self.name} goes from {self.stops[0]:g} to {self.stops[-1]:g} {self.unit}; given {value!r}")
        return replace(self, stops=tuple(sorted((*self.stops, value))), value=value)


def decades(low: float, high: float, steps: Sequence[float] = (1, 2, 5)) -> tuple[float, ...]:
    """Round numbers from `low` to `high`, the same ones in each decade.

    >>> decades(1, 100)
    (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    values = [float(f"{step}e{power}") for power in range(first, last + 1) for step in steps]
    return tuple(value for value in values if low * (1 - 1e-9) <= value <= high * (1 + 1e-9))


def powers_of_two(low: int, high: int) -> tuple[int, ...]:
    """The powers of two from `low` to `high`.

    >>> powers_of_two(2, 16)
    (2, 4, 8, 16)
    """
    return tuple(2**power for power in range(low.bit_length() - 1, high.bit_length()))


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One axis of a chart.

    Attributes:
        label, unit: what it shows.
        log: whether equal steps are equal factors.
        percent: whether its values are shares, said in per cent.
        low, high: its ends; None takes them from what is drawn.
        names: of a chart of bars, one for each place 0, 1, 2, …
    """

    label: str
    unit: str = ""
    log: bool = False
    percent: bool = False
    low: float | None = None
    high: float | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A line through points; NaN breaks it.

    Attributes:
        label: for the legend.
        x, y: the points.
        minor: a line to compare with, drawn thin.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    minor: bool = False


@dataclass(frozen=True, kw_only=True)
class Point:
    """One place on a chart, with a word of where it is from.

    Attributes:
        label: what it is.
        x, y: where.
        provenance: `simulated` for where the sliders stand, `measured` for what a record says.
        aside: a place to compare with, such as the best one.
    """

    label: str
    x: float
    y: float
    provenance: Provenance = "simulated"
    aside: bool = False


@dataclass(frozen=True, kw_only=True)
class Bars:
    """One layer of stacked bars.

    Attributes:
        label: for the legend.
        heights: of each bar.
    """

    label: str
    heights: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Axes and what is drawn in them. Bars, if any, are stacked in the order given."""

    title: str
    x: Axis
    y: Axis
    curves: tuple[Curve, ...] = ()
    points: tuple[Point, ...] = ()
    bars: tuple[Bars, ...] = ()
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Span:
    """A stretch of a timeline.

    Attributes:
        lane: the row, by its place in the y axis's names.
        begin, end: on the x axis.
        kind: for the legend; stretches of a kind look alike.
        text: written inside, where there is room.
    """

    lane: int
    begin: float
    end: float
    kind: str
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """What a panel shows at some settings.

    Attributes:
        charts: one or two.
        said: what they show, in one or two sentences with the numbers.
        numbers: the same numbers, by name, for who wants to check them.
    """

    charts: tuple[Chart, ...]
    said: str
    numbers: Mapping[str, float | str | None] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a record adds to a panel.

    Attributes:
        settings: where its sliders stand for this run.
        points: on which chart (by place), and what.
        said: one sentence with the measured number, and beside it what the formula says.
    """

    settings: Mapping[str, Any]
    points: tuple[tuple[int, Point], ...]
    said: str


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One formula under the finger.

    Attributes:
        title: the question that it answers.
        sliders: what may be moved.
        draw: from the settings, by the sliders' names, to what is shown.
        source: the formula, and where it is from.
        measured: what a record adds; None without one.
    """

    title: str
    sliders: tuple[Slider, ...]
    draw: Callable[..., Drawn]
    source: str
    measured: Measured | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """Where the sliders begin."""
        return {slider.name: slider.value for slider in self.sliders}

    def at(self, **settings: Any) -> Panel:
        """The same panel with some sliders elsewhere.

        Raises:
            UnknownName: there is no such slider.
            UsageError: a value that it cannot take.
        """
        known = {slider.name for slider in self.sliders}
        for name in settings:
            if name not in known:
                raise UnknownName("slider of this panel", name, known)
        stands = {**self.settings, **settings}
        return replace(self, sliders=tuple(slider.at(stands[slider.name]) for slider in self.sliders))

    def with_measured(self, measured: Measured | None) -> Panel:
        """The same panel with a record's point on it, its sliders where that record's run stood."""
        return self if measured is None else replace(self.at(**measured.settings), measured=measured)

    def shown(self, settings: Mapping[str, Any] | None = None) -> Drawn:
        """What is shown at these settings (where the sliders begin, if None), the measured points among it."""
        drawn = self.draw(**{**self.settings, **(settings or {})})
        if self.measured is None:
            return drawn
        charts = list(drawn.charts)
        for place, point in self.measured.points:
            charts[place] = replace(charts[place], points=(*charts[place].points, point))
        return replace(drawn, charts=tuple(charts), said=f"{drawn.said} {self.measured.said}")
