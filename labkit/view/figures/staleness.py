"""The figures of asynchronous training: who computed on which version, how stale, to what effect, within what limits."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ...detect.runs import names_of
from ...detect.staleness.measures import Losses, Pushes, loss_by_samples, pushes, stability
from ...errors import UsageError
from ...record.roles import Role
from ...record.schema import Record
from ...theory.delay import stability_limit
from .. import palette
from ..picture import Picture
from .common import finish, legend_above, need, plain_axes, side_by_side

MAX_VERSIONS, VERSIONS_A_WORKER = 40, 5
"""Versions drawn of a run, whichever is more: with yet more of them, arrows are too short to read."""

MAX_WORKERS = 32
_LEVELS = ((0, palette.GREEN), (1, palette.BLUE), (2, palette.ORANGE), (4, palette.VERMILION))
"""Staleness over what W workers cause on average, from which a colour begins: fresh, usual, older, far older."""


def who_computed_on_what(*records: Record, versions: int = MAX_VERSIONS) -> Picture:
    """A row a worker; an arrow from the version that a gradient was computed on to the version that it was applied to.

    Versions are counted in updates of the weights, so the figure holds no time. A dot is a gradient that met the very
    weights that it was computed on.

    Args:
        versions: how many are drawn, if not more for the sake of many workers.
    """
    need(records)
    runs = [_pushes(record) for record in records]
    tallest = min(MAX_WORKERS, max(len(of_run.workers) for of_run in runs))
    figure, axes = side_by_side(records, width=6.4, height=1.7 + 0.42 * tallest)
    words = []
    for axis, of_run, name in zip(axes, runs, names_of(records), strict=True):
        part = _draw_arrows(axis, of_run, tallest, versions)
        mean, most = float(of_run.staleness.mean()), int(of_run.staleness.max())
        axis.set_title(name, loc="left", fontsize=11, fontweight="bold")
        axis.set_xlabel(
            f"version of the weights (updates so far): {part}\nmean staleness of all gradients {mean:.2f}, at most {most}",
            fontsize=9,
        )
        words.append(f"{name}: gradients are {mean:.2f} versions old on average, {most} at most; drawn: {part}")
    handles: list[Any] = [Line2D([], [], marker="o", color=palette.GREEN, linestyle="", label="fresh")]
    handles += [
        Line2D([], [], color=colour, linewidth=2, label=label)
        for (_, colour), label in zip(_LEVELS[1:], ("up to W versions old (W workers)", "up to 2W", "older"), strict=True)
    ]
    figure.legend(handles=handles, loc="upper center", ncols=4, frameon=False, fontsize=8.5, bbox_to_anchor=(0.5, 1.0))
    top = 1 - 0.38 / figure.get_figheight()
    return finish(figure, records, "Which worker computed on which version. " + "; ".join(words) + ".", top=top)


def _draw_arrows(axis, of_run: Pushes, tallest: int, versions: int) -> str:
    """Draw them, and say which part of the updates they are of."""
    updates = int(of_run.pushed.max()) + 1
    drawn = min(max(versions, VERSIONS_A_WORKER * len(of_run.workers)), updates)
    shown = of_run.pushed < drawn
    rows = of_run.workers[:MAX_WORKERS]
    for row, worker in enumerate(rows):
        mine = np.flatnonzero(shown & (of_run.rank == worker))
        lines, colours = [], []
        for at in mine:
            start, end = int(of_run.pulled[at]), int(of_run.pushed[at])
            colour = _colour(end - start, len(of_run.workers))
            if end == start:
                axis.plot([start], [row], marker="o", markersize=4, color=colour, linestyle="")
                continue
            lines.append([(start + 0.1, row), (end - 0.25, row)])
            colours.append(colour)
            axis.plot([end - 0.25], [row], marker=">", markersize=5, color=colour, linestyle="")
            if end - start > 1:
                axis.annotate(str(end - start), ((start + end) / 2, row), (0, 3), textcoords="offset points", fontsize=6.5,
                              ha="center", color=colour)  # fmt: skip
        axis.add_collection(LineCollection(lines, colors=colours, linewidths=1.8))
    axis.set_xlim(-0.6, drawn - 0.2)
    axis.set_ylim(tallest - 0.4, -0.7)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_yticks(range(len(rows)), [f"rank {worker}" for worker in rows])
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x", color=palette.LIGHT, linewidth=0.5)
    axis.set_axisbelow(True)
    axis.spines[["top", "right", "left"]].set_visible(False)
    return f"the first {drawn} of {updates} updates" if drawn < updates else f"all {updates} updates"


def _colour(staleness: int, workers: int) -> str:
    if staleness == 0:
        return palette.GREEN
    return palette.BLUE if staleness <= workers else palette.ORANGE if staleness <= 2 * workers else palette.VERMILION


def staleness(*records: Record) -> Picture:
    """How stale each worker's gradients are: a row a worker, a bar for each number of versions, a line at the mean."""
    need(records)
    runs = [_pushes(record) for record in records]
    tallest = min(MAX_WORKERS, max(len(of_run.workers) for of_run in runs))
    furthest = max(int(of_run.staleness.max()) for of_run in runs)
    figure, axes = side_by_side(records, width=6.0, height=1.5 + 0.62 * tallest)
    words = []
    for axis, of_run, name in zip(axes, runs, names_of(records), strict=True):
        rows = of_run.workers[:MAX_WORKERS]
        for row, worker in enumerate(rows):
            own = of_run.of_rank(worker)
            shares = np.bincount(own, minlength=furthest + 1) / len(own)
            axis.bar(range(len(shares)), -0.78 * shares, 0.86, bottom=row + 0.42, color=palette.SKY, zorder=2)
            axis.plot([own.mean()] * 2, [row - 0.36, row + 0.42], color=palette.VERMILION, linewidth=1.8, zorder=3)
            said = f"mean {own.mean():.2f}\n{len(own)} gradients"
            axis.annotate(said, (1, row), xycoords=("axes fraction", "data"), fontsize=8, ha="right", va="center")
            axis.axhline(row + 0.42, color=palette.LIGHT, linewidth=0.8, zorder=1)
        axis.set_yticks(range(len(rows)), [f"rank {worker}" for worker in rows])
        axis.set_ylim(tallest - 0.5, -0.5)
        axis.set_xlim(-0.7, furthest * 1.4 + 2)
        axis.set_title(name, loc="left", fontsize=11, fontweight="bold")
        axis.set_xlabel("staleness: updates between a gradient's pull and its push", fontsize=9)
        axis.tick_params(axis="y", length=0)
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        means = ", ".join(f"{of_run.of_rank(worker).mean():.2f}" for worker in rows)
        words.append(f"{name}: mean staleness by rank {means}")
    return finish(figure, records, "Staleness by worker. " + "; ".join(words) + ".", top=0.97)


def loss_both_ways(*records: Record) -> Picture:
    """The loss against samples and against time; numbers are means over the last gradients, as the detector has them.

    Of one or two records also the synchronous runs that they were compared with, as thin lines.
    """
    need(records)
    figure = Figure(figsize=(10.5, 4.3))
    left, right = figure.subplots(1, 2)
    words: list[str] = []
    drawn: list[Losses] = []
    for index, (record, name) in enumerate(zip(records, names_of(records), strict=True)):
        own = loss_by_samples(record.run)
        if own is None:
            raise UsageError(
                f"{name} recorded no versions or no loss to draw; record the scalars version_pulled, version_pushed and "
                "loss_local in each step"
            )
        style = {"color": palette.VARIANT_COLOUR[index % 6], "linestyle": palette.VARIANT_LINE[index % 6], "linewidth": 2.2}
        said = f"{name}: {own.last:.3g}, mean of the last gradients"
        _draw_loss(left, right, own, said, style)
        drawn.append(own)
        words.append(f"{said}, after {int(own.samples[-1]):,} samples and {own.time_s[-1]:.2f} s")
        reference = loss_by_samples(record.runs[Role.SYNC]) if Role.SYNC in record.runs else None
        if reference is not None and len(records) < 3:
            said = f"{name}, made synchronous: {reference.last:.3g}"
            _draw_loss(left, right, reference, said, {"color": style["color"], "linewidth": 0.9})
            drawn.append(reference)
            words.append(f"{said}, after {reference.time_s[-1]:.2f} s")
    left.set_xlabel("samples that all ranks together went through")
    right.set_xlabel("seconds since the first gradient was begun")
    losses = np.concatenate([curve.loss for curve in drawn])
    losses = losses[np.isfinite(losses) & (losses > 0)]
    for axis in (left, right):
        axis.set_yscale("log")
        _plain_numbers(axis)
        if len(losses):
            axis.set_ylim(losses.min() * 0.8, losses.max() * 1.3)
        axis.set_ylabel("loss (mean of 2 batches of each rank)")
        axis.set_xlim(left=0)
    top = legend_above(figure, *left.get_legend_handles_labels(), columns=3)
    plain_axes(left, right)
    return finish(figure, records, "Loss against samples and against time. " + "; ".join(words) + ".", top=top)


def _plain_numbers(axis) -> None:
    """0.1, 1, 10 beside a logarithmic axis; numbers in between where it spans less than a decade."""
    axis.yaxis.set_major_formatter(lambda value, _place: f"{value:g}")

    def between(value: float, _place: int) -> str:
        low, high = axis.get_ylim()
        return f"{value:.3g}" if high < 10 * low else ""

    axis.yaxis.set_minor_formatter(between)


def _draw_loss(left, right, curve: Losses, label: str, style: dict[str, Any]) -> None:
    left.plot(curve.samples, curve.loss, label=label, **style)
    right.plot(curve.time_s, curve.loss, label=label, **style)


def stability_chart(*records: Record) -> Picture:
    """The limit of lr times curvature against the delay, for some momenta (simulated), and where the records lie."""
    need(records)
    found = [stability(record) for record in records]
    placed = [(record, name, at) for record, name, at in zip(records, names_of(records), found, strict=True) if at]
    if not placed:
        raise UsageError(
            "no record has a learning rate, versions and a curvature to place it by; run it through the lab stale-gradients"
        )
    figure = Figure(figsize=(8.6, 4.4))
    axis = figure.subplots()
    furthest = max(8, *(at.delay + 1 for _, _, at in placed))
    delays = list(range(furthest + 1)) if furthest <= 32 else sorted({int(d) for d in np.linspace(0, furthest, 33)})
    momenta = sorted({0.0, 0.5, 0.9, *(float(record.config.get("momentum") or 0.0) for record, _, _ in placed)})
    for momentum, colour in zip(momenta, (palette.GREY, "#555555", "black", palette.PURPLE, palette.SKY), strict=False):
        limits = [stability_limit(delay, momentum) for delay in delays]
        axis.plot(delays, limits, color=colour, linewidth=1.3, marker=".", markersize=4)
        axis.annotate(f"momentum {momentum:g}", (delays[-1], limits[-1]), (5, 0), textcoords="offset points", fontsize=8.5,
                      color=colour, va="center")  # fmt: skip
    words = []
    for index, (_record, name, at) in enumerate(placed):
        colour = palette.VARIANT_COLOUR[index % 6]
        axis.plot([at.delay], [at.rate], marker="osD^vP"[index % 6], markersize=9, color=colour, linestyle="", label=name)
        axis.plot([at.delay] * 2, [at.rate, at.limit], color=colour, linewidth=1, linestyle=":")
        side = "above" if at.times_the_limit > 1 else "below"
        words.append(
            f"{name}: lr times curvature {at.rate:.2g}, {side} its limit of {at.limit:.2g} at a delay of {at.delay}"
        )
    axis.set_yscale("log")
    _plain_numbers(axis)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlim(-0.4, furthest * 1.18)
    axis.set_xlabel("delay of a gradient, in versions")
    axis.set_ylabel("learning rate × curvature")
    axis.set_title(
        "stable below the line of its momentum (simulated: a quadratic with a fixed delay)", loc="left", fontsize=9.5
    )
    axis.legend(frameon=False, fontsize=9, loc="upper right")
    plain_axes(axis)
    return finish(figure, records, "Learning rates and the limits of stability. " + "; ".join(words) + ".", top=0.98)


def _pushes(record: Record) -> Pushes:
    of_run = pushes(record.run)
    if of_run is None:
        raise UsageError(f"{record.variant} recorded no versions to draw; record version_pulled and version_pushed")
    return of_run


FIGURES = {
    "who-computed-on-what": who_computed_on_what,
    "staleness": staleness,
    "loss-both-ways": loss_both_ways,
    "stability": stability_chart,
}
