"""Lab 04: at which learning rate stale gradients make training diverge."""

from __future__ import annotations

import math

import numpy as np

from ..delay import delayed_descent, stability_limit
from ..panel import Axis, Chart, Curve, Drawn, Panel, Point, Slider, decades

DELAYS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 31, 40, 50, 63)
UPDATES = 200
SMALLEST, LARGEST = 1e-6, 1e6


def draw(delay: int, lr: float, curvature: float, momentum: float) -> Drawn:
    """The limit by staleness, and the path of a weight at these settings."""
    rate, limit = lr * curvature, stability_limit(delay, momentum)
    fate = "the weight settles" if rate < limit else "the weight flies apart"
    fresh = stability_limit(0, momentum)
    said = (
        f"Gradients {delay} versions old are stable below lr·λ = {limit:.3g}; fresh ones below {fresh:.3g}. Yours is "
        f"{lr:g} × {curvature:g} = {rate:.3g}, {rate / limit:.2g} times the limit: {fate}. The largest learning rate here "
        f"is {limit / curvature:.3g}."
    )
    numbers = {"rate": rate, "limit": limit, "largest_lr": limit / curvature, "over_limit": rate / limit}
    return Drawn(charts=(_limits(delay, rate, momentum), _path(delay, rate, momentum)), said=said, numbers=numbers)


def _limits(delay: int, rate: float, momentum: float) -> Chart:
    x = tuple(float(each) for each in sorted({*DELAYS, delay}))
    curves = [
        Curve(label=f"limit with momentum {momentum:g}", x=x, y=tuple(stability_limit(int(d), momentum) for d in x)),
    ]
    if momentum:
        curves.append(Curve(label="limit without momentum", x=x, y=tuple(stability_limit(int(d)) for d in x), minor=True))
    return Chart(
        title="Stable below the line",
        x=Axis(label="staleness (τ)", unit="versions", low=0, high=max(64, delay)),
        y=Axis(label="learning rate × curvature (lr·λ)", log=True),
        curves=tuple(curves),
        points=(Point(label="your training", x=float(delay), y=rate),),
    )


def _path(delay: int, rate: float, momentum: float) -> Chart:
    sizes = delayed_descent(delay, rate, momentum, updates=UPDATES)
    shown = [float(min(max(size, SMALLEST), LARGEST)) if math.isfinite(size) else LARGEST for size in sizes]
    ends = next((place for place, size in enumerate(shown) if size >= LARGEST), len(shown) - 1)
    x = tuple(np.arange(ends + 1, dtype=float))
    return Chart(
        title="A weight at these settings",
        x=Axis(label="updates", low=0, high=UPDATES),
        y=Axis(label="distance from the minimum", log=True, low=SMALLEST, high=LARGEST),
        curves=(
            Curve(label="|w|, from 1 at rest", x=x, y=tuple(shown[: ends + 1])),
            Curve(label="where it began", x=(0.0, float(UPDATES)), y=(1.0, 1.0), minor=True),
        ),
    )


PANEL = Panel(
    title="At which learning rate do stale gradients diverge?",
    sliders=(
        Slider(name="delay", label="staleness (τ); W workers at one pace have W − 1", unit="versions",
               stops=tuple(range(64)), value=3),
        Slider(name="lr", label="learning rate (lr)", unit="", stops=decades(1e-5, 10), value=0.05),
        Slider(name="curvature", label="curvature (λ)", unit="", stops=decades(0.1, 1e4), value=10.0),
        Slider(name="momentum", label="momentum (β)", unit="", stops=(0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99), value=0.0),
    ),
    draw=draw,
    source="roots of z^(τ+2) − (1+β)z^(τ+1) + βz^τ + lr·λ·z; without momentum 2·sin(π/(2(2τ+1))): Levin and May, 1976",
)  # fmt: skip
