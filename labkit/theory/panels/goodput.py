"""Lab 08: how often to save, where failures come."""

from __future__ import annotations

import functools

import numpy as np

from ..panel import Axis, Chart, Curve, Drawn, Panel, Point, Slider
from ..reliability import Costs, best_interval, goodput, young_interval
from ..scale import share_said, time_said


def draw(save_s: float, restart_min: float, mtbf_h: float, interval_min: float, *, own: Costs | None = None) -> Drawn:
    """Goodput by interval for a cluster, and, of a run whose own costs are given, for that run.

    Args:
        own: save, restart and mean time between failures of one run, in seconds; None for no second chart.
    """
    costs, interval = Costs(save=save_s, restart=restart_min * 60, mtbf=mtbf_h * 3600), interval_min * 60
    young, best, here = young_interval(costs), best_interval(costs), goodput(interval, costs)
    reached = goodput(best, costs)
    said = (
        f"A save costs {time_said(save_s)}, a restart {time_said(costs.restart)}, a failure comes every "
        f"{time_said(costs.mtbf)}. Saving every {time_said(interval)} keeps {share_said(here)} of the time as lasting work. "
        f"The best interval is {time_said(best)} ({share_said(reached)}); Young's √(2·C·M) says {time_said(young)}."
    )
    numbers = {"goodput": here, "best_interval_s": best, "best_goodput": reached, "young_interval_s": young}
    charts = [_by_interval("A cluster", costs, 60.0, "min", (interval, here), "your interval")]
    if own is not None:
        charts.append(_by_interval("Your run, at its own scale", own, 1.0, "s", None, ""))
    return Drawn(charts=tuple(charts), said=said, numbers=numbers)


def _by_interval(title: str, costs: Costs, unit_s: float, unit: str, at: tuple[float, float] | None, label: str) -> Chart:
    best = best_interval(costs)
    low, high = best / 30, best * 30
    low, high = (min(low, at[0]), max(high, at[0])) if at else (low, high)
    around = np.geomspace(low, high, 81)
    points = [Point(label="best", x=best / unit_s, y=goodput(best, costs), aside=True)]
    if at is not None:
        points.append(Point(label=label, x=at[0] / unit_s, y=at[1]))
    return Chart(
        title=title,
        x=Axis(label="computing between two saves", unit=unit, log=True, low=low / unit_s, high=high / unit_s),
        y=Axis(label="goodput", percent=True, low=0, high=1.05),
        curves=(Curve(label="goodput", x=tuple(around / unit_s), y=tuple(goodput(each, costs) for each in around)),),
        points=tuple(points),
    )


def beside_a_run(own: Costs) -> Panel:
    """The panel with a second chart, of one run at its own scale; a toy's milliseconds do not belong on a cluster's."""
    return Panel(title=PANEL.title, sliders=PANEL.sliders, draw=functools.partial(draw, own=own), source=PANEL.source)


PANEL = Panel(
    title="How often should you save?",
    sliders=(
        Slider(name="save_s", label="training waits for a save (C)", unit="s",
               stops=(0.5, 1, 2, 5, 10, 20, 30, 60, 120, 180, 300, 600, 900), value=60),
        Slider(name="restart_min", label="from a failure to the next step (R)", unit="min",
               stops=(0.5, 1, 2, 5, 10, 15, 20, 30, 45, 60, 120), value=15),
        Slider(name="mtbf_h", label="between failures (M)", unit="h",
               stops=(0.5, 1, 2, 3, 4, 6, 8, 12, 24, 48, 72, 168, 336, 720), value=3),
        Slider(name="interval_min", label="computing between two saves (τ)", unit="min",
               stops=(1, 2, 3, 5, 7, 10, 15, 20, 30, 45, 60, 90, 120, 180, 360, 720), value=60),
    ),
    draw=draw,
    source="τ/(M·e^(R/M)·(e^((τ+C)/M) − 1)): Daly, 2006; √(2·C·M): Young, 1974",
)  # fmt: skip
