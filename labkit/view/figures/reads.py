"""The figures of what was read and what it did: pure drawings of records, several side by side.

Each function takes one or more records and returns a Picture. Each prints the provenance of what it shows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from ...detect.loss import SMOOTHED, loss_curve, smoothed
from ...detect.reads.measures import Reads, dataset_size, first_epoch
from ...detect.runs import lane_shares, names_of
from ...errors import UsageError
from ...record.roles import Role
from ...record.schema import Record
from .. import palette
from ..picture import Picture
from .common import finish, legend_above, legend_over, need, plain_axes, side_by_side

MAX_STEPS = 8
MAX_SLOTS = 16
TIMELINE_STEPS = 6
FEW_STEPS = 20
"""A loss over fewer steps is drawn step by step, without a mean."""
SPAN_SAID = {"backward": "backward, with its wait for all-reduces", "all_reduce": "all-reduce under way"}


def who_read_what(*records: Record, steps: int = MAX_STEPS) -> Picture:
    """A grid of ranks by steps: each square is a sample, its colour says how many ranks read it in the epoch.

    A dot marks a sample that another rank reads in the very same step. The number is the id of the batch's first sample.

    Args:
        steps: how many are drawn.
    """
    need(records)
    tallest = max(record.run.world_size for record in records)
    figure, axes = side_by_side(records, width=6.2, height=1.35 + 0.62 * tallest)
    words = []
    for axis, record, name in zip(axes, records, names_of(records), strict=True):
        seen = _reads(record)
        _draw_grid(axis, seen, steps)
        axis.set_title(name, loc="left", fontsize=11, fontweight="bold")
        said = f"{seen.unique_share_of_global_batch:.1%} of the samples of a global batch are different"
        axis.set_xlabel(f"step  (of each batch up to {MAX_SLOTS} samples)   ·   {said}", fontsize=8.5)
        words.append(f"{name}: {said}")
    world_size = tallest
    handles: list[Any] = [
        Patch(color=palette.by_readers(readers, world_size), label=_readers_label(readers, world_size))
        for readers in sorted({1, *(() if world_size < 3 else (2,)), *(() if world_size < 4 else (3,)), world_size})
    ]
    handles.append(
        Line2D([], [], marker="o", color="black", linestyle="", markersize=3, label="another rank reads it in this step")
    )
    figure.legend(
        handles=handles, loc="upper center", ncols=len(handles), frameon=False, fontsize=8.5, bbox_to_anchor=(0.5, 1.0)
    )
    return finish(figure, records, "Which rank read which sample at each step. " + "; ".join(words) + ".", top=0.9)


def _readers_label(readers: int, world_size: int) -> str:
    if readers <= 1:
        return "read by one rank in the epoch"
    return f"by all {world_size}" if readers >= world_size else f"by {readers}" + ("" if readers == 2 else " or more")


def _draw_grid(axis, seen: Reads, most: int) -> None:
    readers = dict(zip(seen.copies[0].tolist(), seen.ranks_reading.tolist(), strict=True))
    steps = min(most, max((len(b) for b in seen.batches), default=0))
    columns = MAX_SLOTS // 2
    squares, colours, dots = [], [], []
    for step in range(steps):
        keys, counts = np.unique(seen.global_batches[step], return_counts=True)
        in_step = dict(zip(keys.tolist(), counts.tolist(), strict=True))
        for rank, batches in enumerate(seen.batches):
            if step >= len(batches):
                continue
            shown = batches[step][:MAX_SLOTS].tolist()
            if not shown:
                continue  # a rank whose part of the step was empty
            for slot, key in enumerate(shown):
                x = step + 0.06 + (slot % columns) * 0.88 / columns
                y = rank + 0.34 + (slot // columns) * 0.28
                squares.append(Rectangle((x, y), 0.8 / columns, 0.24))
                colours.append(palette.by_readers(readers[key], seen.world_size))
                if in_step[key] > 1:
                    dots.append((x + 0.4 / columns, y + 0.12))
            first = f"{shown[0]}" if seen.key == "id" else f"{shown[0] & 0xFFFF:04x}"
            axis.text(step + 0.06, rank + 0.29, f"#{first}…", fontsize=7, va="bottom", ha="left")
    axis.add_collection(PatchCollection(squares, facecolors=colours, edgecolors="none"))
    if dots:
        axis.scatter(*zip(*dots, strict=True), s=3, color="black", zorder=3)
    axis.set_xlim(0, max(steps, 1))
    axis.set_ylim(seen.world_size, 0)
    axis.set_xticks(np.arange(steps) + 0.5, [str(step) for step in range(steps)])
    axis.set_yticks(np.arange(seen.world_size) + 0.5, [f"rank {rank}" for rank in range(seen.world_size)])
    axis.spines[:].set_visible(False)
    for line in range(1, seen.world_size):
        axis.axhline(line, color=palette.LIGHT, linewidth=0.8)
    for line in range(1, steps):
        axis.axvline(line, color=palette.LIGHT, linewidth=0.8)
    axis.tick_params(length=0)


def coverage_and_copies(*records: Record) -> Picture:
    """Left: how many samples were read 0, 1, 2, … times in the first epoch. Right: how fast the data are covered."""
    need(records)
    figure = Figure(figsize=(10.5, 3.9), layout=None)
    left, right = figure.subplots(1, 2)
    most, words, bars = 1, [], []
    for index, (record, name) in enumerate(zip(records, names_of(records), strict=True)):
        seen = _reads(record)
        size = dataset_size(record.run) or seen.unique
        counts = np.bincount(seen.copies[1])
        counts[0] = max(0, size - seen.unique)
        most = max(most, len(counts) - 1)
        label = f"{name}: {seen.unique:,} of {size:,} samples in {seen.total:,} reads"
        bars.append((label, counts))
        processed, covered = _coverage_curve(seen, size)
        style = {"color": palette.VARIANT_COLOUR[index % 6], "linestyle": palette.VARIANT_LINE[index % 6]}
        right.plot(processed / size, covered, linewidth=2.2, label=name, **style)
        words.append(f"{label} of one epoch, one sample at most {int(seen.copies[1].max())} times")
    _draw_counts(left, bars)
    left.set_xticks(range(most + 1))
    left.set_xlim(-0.5, most + 0.5)
    left.set_xlabel("reads of one sample in the first epoch, by all ranks together")
    left.set_ylabel("samples")
    left.margins(y=0.15)
    legend_over(left)
    limit = max(1.0, right.get_xlim()[1])
    right.plot([0, 1, limit], [0, 1, 1], color=palette.GREY, linewidth=1, linestyle=":", label="each sample once")
    right.set_xlabel("samples processed by all ranks together / size of the data set")
    right.set_ylabel("share of the data set read")
    right.set_ylim(0, 1.05)
    right.set_xlim(0, limit)
    right.legend(frameon=False, fontsize=9, loc="lower right")
    plain_axes(left, right)
    return finish(figure, records, "Coverage and copies. " + "; ".join(words) + ".", top=0.96)


def _draw_counts(axis, of_records: list[tuple[str, np.ndarray]]) -> None:
    """A bar for each count that is not 0; those of one number of reads stand around its tick, and one alone upon it."""
    width = 0.8 / len(of_records)
    for index, (label, counts) in enumerate(of_records):
        for times in np.flatnonzero(counts):
            there = [at for at, (_, other) in enumerate(of_records) if times < len(other) and other[times]]
            x = times + (there.index(index) - (len(there) - 1) / 2) * width
            bar = axis.bar(x, counts[times], width, color=palette.VARIANT_COLOUR[index % 6], label=label,
                           hatch=("", "///", "..", "xx", "--", "++")[index % 6], edgecolor="white")  # fmt: skip
            axis.bar_label(bar, [f"{counts[times]:,}"], fontsize=8)
            label = "_"  # in the legend once


def _coverage_curve(seen: Reads, size: int) -> tuple[np.ndarray, np.ndarray]:
    read: set[int] = set()
    processed, covered = [0], [0.0]
    for keys in seen.global_batches:
        read.update(keys.tolist())
        processed.append(processed[-1] + len(keys))
        covered.append(len(read) / size)
    return np.array(processed), np.array(covered)


def timeline(*records: Record) -> Picture:
    """What each rank does when, in the first steps after the first: compute above, communication below, in milliseconds."""
    need(records)
    tallest = max(record.run.world_size for record in records)
    figure, axes = side_by_side(records, width=6.2, height=1.5 + 0.6 * tallest)
    words = []
    for axis, record, name in zip(axes, records, names_of(records), strict=True):
        run = record.run
        skip = 1 if min(len(log.steps) for log in run.ranks) > TIMELINE_STEPS else 0  # the first step builds the buckets
        shown = [log.steps[skip : skip + TIMELINE_STEPS] for log in run.ranks]
        if not any(shown):
            raise UsageError(f"{name} has no steps to draw; read batches through probe.batches(loader)")
        origin = min(steps[0].start_ns for steps in shown if steps)
        for rank, steps in enumerate(shown):
            for step in steps:
                start = (step.start_ns - origin) / 1e6
                axis.plot([start, start], [rank + 0.08, rank + 0.92], color=palette.LIGHT, linewidth=0.8, zorder=0)
                for span in step.spans:
                    comm = span.lane == "comm"
                    axis.broken_barh(
                        [((span.start_ns - origin) / 1e6, (span.end_ns - span.start_ns) / 1e6)],
                        (rank + (0.55 if comm else 0.12), 0.33 if comm else 0.4),
                        facecolor=palette.SPAN_COLOUR.get(span.name, palette.PURPLE),
                        hatch=palette.SPAN_HATCH.get(span.name, ""),
                        edgecolor="white",
                        linewidth=0.3,
                    )
        axis.set_ylim(run.world_size, 0)
        axis.set_yticks(np.arange(run.world_size) + 0.5, [f"rank {rank}" for rank in range(run.world_size)])
        lanes = lane_shares(run.ranks[0])
        shares = ", ".join(f"{lane} {share:.0%}" for lane, share in lanes.items())
        shares += ", partly at the same time" if sum(lanes.values()) > 1 else ""
        drawn = f"steps {skip} to {skip + max(map(len, shown)) - 1}"
        axis.set_xlabel(f"ms, {drawn}; of all of rank 0's step time: {shares}", fontsize=8.5)
        axis.set_title(name, loc="left", fontsize=11, fontweight="bold")
        words.append(f"{name}: {drawn}; of all of rank 0's step time {shares}")
        plain_axes(axis)
    handles = [
        Patch(facecolor=colour, hatch=palette.SPAN_HATCH.get(span, ""), edgecolor="white", label=SPAN_SAID.get(span, span))
        for span, colour in palette.SPAN_COLOUR.items()
    ]
    figure.legend(
        handles=handles, loc="upper center", ncols=len(handles), frameon=False, fontsize=9, bbox_to_anchor=(0.5, 1.0)
    )
    return finish(figure, records, "Timeline of each rank. " + "; ".join(words) + ".", top=0.9)


def loss(*records: Record, references: bool = True) -> Picture:
    """The loss of the global batch against samples and against time; thin lines are the one-process `references`."""
    need(records)
    figure = Figure(figsize=(10.5, 3.9))
    left, right = figure.subplots(1, 2)
    words = []
    curves = [loss_curve(record.run) for record in records]
    few = max(len(curve.samples) for curve in curves) < FEW_STEPS
    drawn = np.asarray if few else smoothed
    for index, (record, curve, name) in enumerate(zip(records, curves, names_of(records), strict=True)):
        style = {"color": palette.VARIANT_COLOUR[index % 6], "linestyle": palette.VARIANT_LINE[index % 6]}
        if not len(curve.samples):
            raise UsageError(f"{name} has no steps to draw; read batches through probe.batches(loader)")
        style |= {"marker": "os^Dvx"[index % 6]} if few else {}
        label, values = name if "ranks" in name else f"{name}, {record.run.ranks_said}", drawn(curve.loss_global)
        left.plot(curve.samples, values, linewidth=2.2, label=label, **style)
        right.plot(curve.time_s, values, linewidth=2.2, label=label, **style)
        if references and Role.SINGLE in record.runs:
            single = loss_curve(record.runs[Role.SINGLE])
            thin = {"color": style["color"], "linewidth": 0.9, "alpha": 0.8, "label": f"{name}: its one-process reference"}
            left.plot(single.samples, drawn(single.loss_global), **thin)
            right.plot(single.time_s, drawn(single.loss_global), **thin)
        words.append(f"{label}: {values[-1]:.3g} after {int(curve.samples[-1]):,} samples and {curve.time_s[-1]:.2f} s")
    left.set_xlabel("samples processed by all ranks together")
    right.set_xlabel("seconds since the first step")
    for axis in (left, right):
        axis.set_ylabel("loss of each step" if few else f"loss (mean of {SMOOTHED} steps)")
        if not few:  # a fall over a few steps is too small to see above 0
            axis.set_ylim(bottom=0)
        axis.set_xlim(left=0)
    lines, labels = left.get_legend_handles_labels()
    top = legend_above(figure, lines, labels, columns=3)
    plain_axes(left, right)
    return finish(figure, records, "Loss against samples and against time. " + "; ".join(words) + ".", top=top)


def _reads(record: Record) -> Reads:
    seen = first_epoch(record.run)
    if seen is None or not seen.total:
        raise UsageError(f"{record.variant} recorded no samples to draw; read batches through probe.batches(loader)")
    return seen


FIGURES = {
    "who-read-what": who_read_what,
    "coverage": coverage_and_copies,
    "timeline": timeline,
    "loss": loss,
}
