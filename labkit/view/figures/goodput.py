"""Goodput against the interval between checkpoints: the formula, a simulation that does not know it, and Young's choice."""

from __future__ import annotations

import textwrap

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from ...detect.runs import names_of
from ...plan.goodput import costs_of
from ...record.schema import Record
from ...theory.reliability import best_interval, goodput, simulate, young_interval
from ...words import duration
from .. import palette
from ..picture import Picture
from .common import finish, need, plain_axes

FAILURES = 400
INTERVALS_S = (0.01, 0.1, 1, 10, 60, 300, 900, 3600, 3 * 3600, 12 * 3600, 48 * 3600)
"""Ticks: intervals as a person says them."""


def goodput_against_interval(*records: Record) -> Picture:
    """Goodput by formula and by simulation, and Young's interval; what a save costs beside what fails at the same scale."""
    need(records)
    figure = Figure(figsize=(10.5, 4.2))
    axis = figure.subplots()
    given, words, lowest = [], [], 1.0
    for index, (record, name) in enumerate(zip(records, names_of(records), strict=True)):
        found = costs_of(record)
        costs = found.costs
        colour = palette.VARIANT_COLOUR[(index + 1) % 6]
        style = {"color": colour, "linestyle": palette.VARIANT_LINE[index % 6]}
        best, young = best_interval(costs), young_interval(costs)
        around = np.geomspace(best / 30, best * 30, 200)
        curve = [goodput(each, costs) for each in around]
        lowest = min([lowest, *curve])
        axis.semilogx(around, curve, label=f"{name}: formula (simulated)", **style)
        drawn = np.geomspace(best / 20, best * 20, 9)
        simulated = [simulate(each, costs, failures=FAILURES, seed=seed) for seed, each in enumerate(drawn)]
        axis.scatter(drawn, simulated, color=colour, marker="o", s=28, facecolor="white", zorder=3,
                     label=f"{name}: {FAILURES} random failures (simulated)")  # fmt: skip
        reached = goodput(young, costs)
        axis.scatter([young], [reached], color=colour, marker="D", s=40, zorder=4)
        axis.annotate(f"√(2CM) = {duration(young)}: {reached:.1%}", (young, reached), xytext=(0, -26 - 20 * index),
                      ha="center", textcoords="offset points", fontsize=8.5, color=colour, zorder=5,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
                      arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.8})  # fmt: skip
        given.append(f"{name}: {found.said}")
        words.append(f"{given[-1]}: Young's interval {duration(young)}, goodput there {reached:.1%}")
    shortest, longest = axis.get_xlim()
    ticks = [tick for tick in INTERVALS_S if shortest <= tick <= longest]
    axis.set_xticks(ticks, [duration(tick) for tick in ticks])
    axis.minorticks_off()
    axis.set_xlabel("computation between two checkpoints")
    axis.set_ylabel("goodput: share of time that counts")
    axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axis.set_ylim(max(0.0, np.floor(lowest * 10 - 1) / 10), 1.01)
    axis.legend(frameon=False, fontsize=8.5, loc="lower center")
    plain_axes(axis)
    axis.set_title("\n".join(textwrap.fill(line, 130, subsequent_indent="    ") for line in given), fontsize=8.5, loc="left")
    return finish(figure, records, "Goodput against the interval. " + "; ".join(words) + ".", top=0.98)


FIGURES = {
    "goodput": goodput_against_interval,
}
