"""Where an axis has its ticks, and what stands at them."""

from __future__ import annotations

import math

from ..theory.panel import Axis
from ..theory.scale import bytes_said, time_said, with_prefix

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MOST = 7
DOUBLINGS = 1100
"""Up to this ratio of its ends, a log axis from 1 on has its ticks at powers of two: ranks, workers."""


def ticks(axis: Axis, low: float, high: float) -> list[tuple[float, str]]:
    """(value, words) of each tick between the ends."""
    if axis.names:
        return [(float(place), name) for place, name in enumerate(axis.names)]
    values = _on_log(low, high) if axis.log else _evenly(low, high)
    return [(value, said(axis, value)) for value in values]


def _evenly(low: float, high: float) -> list[float]:
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def _on_log(low: float, high: float) -> list[float]:
    if low >= 1 and high / low <= DOUBLINGS and float(low).is_integer():
        first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
        return [2.0**power for power in range(first, last + 1, max(1, math.ceil((last - first) / MOST)))]
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first < 2:
        values = [float(f"{step}e{power}") for power in range(first - 1, last + 1) for step in (1, 2, 5)]
        return [value for value in values if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
    step = max(1, math.ceil((last - first) / MOST))
    return [10.0**power for power in range(first, last + 1, step)]


def said(axis: Axis, value: float) -> str:
    """A value of an axis, short enough for a tick."""
    if axis.percent:
        return f"{100 * value:.3g} %"
    if axis.unit == "bytes":
        return bytes_said(value)
    if axis.unit == "s" and axis.log:
        return time_said(value)
    if axis.unit == "FLOP/s":
        return with_prefix(value, "").strip()
    if axis.log and (value >= 1e5 or value < 1e-3):
        power = round(math.log10(value))
        if math.isclose(value, 10.0**power, rel_tol=1e-9):
            return "10" + str(power).translate(_RAISED)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
