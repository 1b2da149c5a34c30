"""Goodput against the interval between checkpoints: the formula, a simulation that does not know it, and Young's choice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from ...errors import UsageError
from ...record.measures import names_of
from ...record.measures_crash import crashes, saves
from ...record.reliability import (
    Costs,
    best_interval,
    goodput,
    mtbf_hours,
    quoted_gpu_hours,
    simulate,
    young_interval,
)
from ...record.schema import Record
from .. import palette
from ..picture import Picture
from .common import finish, need, plain_axes

FAILURES = 400
GPUS = 16384
"""Where the record gives no mean time between failures: that of the published run, on its number of GPUs."""


def goodput_against_interval(*records: Record) -> Picture:
    """Save and restart as measured in the record; failures as given, or as published."""
    need(records)
    figure = Figure(figsize=(10.5, 4.2))
    axis = figure.subplots()
    given, words, lowest = [], [], 1.0
    for index, (record, name) in enumerate(zip(records, names_of(records), strict=True)):
        costs, source = costs_of(record)
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
        axis.annotate(f"√(2CM) = {_time(young)}: {reached:.1%}", (young, reached), xytext=(0, -26 - 20 * index), ha="center",
                      textcoords="offset points", fontsize=8.5, color=colour, zorder=5,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
                      arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.8})  # fmt: skip
        restart = f"restart {_time(costs.restart)}" if costs.restart else "no restart seen"
        measured = f"save {_time(costs.save)}, {restart} (measured)"
        failing = f"failure every {_time(costs.mtbf)} ({source})"
        given.append(f"{name}: {measured}, {failing}")
        words.append(f"{given[-1]}: Young's interval {_time(young)}, goodput there {reached:.1%}")
    axis.set_xlabel("computation between two checkpoints, in seconds")
    axis.set_ylabel("goodput: time that lasts")
    axis.yaxis.set_major_formatter(PercentFormatter(1.0))
    axis.set_ylim(0.8 if lowest > 0.85 else 0, 1.03)
    axis.legend(frameon=False, fontsize=8.5, loc="lower center")
    plain_axes(axis)
    axis.set_title("\n".join(given), fontsize=8.5, loc="left")
    return finish(figure, records, "Goodput against the interval. " + "; ".join(words) + ".", top=0.98)


def costs_of(record: Record) -> tuple[Costs, str]:
    """What a record says of saves and restarts, with the mean time between failures and where that is from."""
    run = record.run
    stalls: Sequence[float] = [save.stall_s for save in saves(run) if save.stall_s > 0]
    if not stalls:
        raise UsageError(
            f"{record.variant} saves nothing, so there is no interval to choose; draw a variant that saves, or record each "
            "save with probe.event('save', of_step=…, stall_s=…)"
        )
    restart = max((crash.restart_s for crash in crashes(run)), default=0.0)
    given = float(str(run.fact("mtbf_s", 0.0)))
    mtbf = given or 3600 * mtbf_hours(quoted_gpu_hours(), GPUS)
    source = "as given" if given else f"quoted: {GPUS:,} GPUs"
    return Costs(save=float(np.median(stalls)), restart=restart, mtbf=mtbf), source


def _time(seconds: float) -> str:
    for unit, factor in (("h", 3600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e3:.3g} ms"
