"""The figures of a crash: steps over time, where the resumed run departs, and what each state is for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from ...detect.crash.measures import (
    REFERENCE,
    Attempt,
    attempts,
    crashes,
    first_difference,
    global_losses,
    losses,
    resumed_at,
    saves,
    steps_that_count,
)
from ...detect.runs import names_of
from ...errors import UsageError
from ...record.schema import Record, Run
from ...theory.departures import departs_at
from .. import palette
from ..picture import Picture
from .common import finish, need, plain_axes


def crash_timeline(*records: Record) -> Picture:
    """Steps done over the time of the wall clock: each attempt, its crash, the restart, what was done twice, each save."""
    need(records)
    figure = Figure(figsize=(10.5, 1.1 + 2.3 * len(records)))
    axes = figure.subplots(len(records), 1, squeeze=False, sharex=True)[:, 0]  # times are compared
    words = []
    for axis, record, name in zip(axes, records, names_of(records), strict=True):
        axis.tick_params(labelbottom=True)
        words.append(f"{name}: {_draw_attempts(axis, record.run)}")
        axis.set_title(name, loc="left", fontsize=10.5, fontweight="bold")
        axis.set_ylabel("steps done")
    axes[-1].set_xlabel("seconds since the first step")
    handles = [
        Line2D([], [], color=palette.BLUE, marker=".", label="step"),
        Line2D([], [], color="black", marker="^", linestyle="", label="checkpoint complete"),
        Line2D([], [], color=palette.VERMILION, marker="X", linestyle="", markersize=9, label="crash"),
        Patch(facecolor=palette.LIGHT, label="restart"),
        Patch(facecolor=palette.VERMILION, alpha=0.25, hatch="///", label="steps done again"),
    ]
    height = figure.get_figheight()
    figure.legend(handles=handles, loc="upper center", ncols=5, frameon=False, fontsize=8.5)
    plain_axes(*axes)
    return finish(figure, records, "Steps over time. " + "; ".join(words) + ".", top=1 - 0.32 / height)


def _draw_attempts(axis, run: Run) -> str:
    stepping = [attempt for attempt in attempts(run) if attempt.first_step is not None]
    if not stepping:
        raise UsageError(
            "no rank of this run came to a step: there is nothing to draw; read batches through probe.batches(loader)"
        )
    zero = stepping[0].started_ns
    for attempt in stepping:
        begun = [log for log in attempt.logs if log.steps]
        if not begun:
            continue  # ended before any rank finished a step
        log = min(begun, key=lambda log: len(log.steps))
        times = [(step.end_ns - zero) / 1e9 for step in log.steps]
        axis.plot(times, [step.step + 1 for step in log.steps], color=palette.BLUE, marker=".", markersize=4, linewidth=1)
    times = [((save.time_ns - zero) / 1e9, save.of_step) for save in saves(run)]
    if times:
        axis.scatter(*zip(*times, strict=True), marker="^", s=32, color="black", zorder=3, clip_on=False)
    for before, after, crash in zip(stepping, stepping[1:], crashes(run), strict=False):
        _draw_crash(axis, before, after, zero)
        axis.annotate(f"{crash.lost_steps} lost", ((after.started_ns - zero) / 1e9, (crash.resumed_at + crash.done) / 2),
                      xytext=(-4, 0), textcoords="offset points", fontsize=8.5, ha="right", va="center")  # fmt: skip
    axis.set_ylim(0, None)
    said = [f"{c.lost_steps} steps lost, {c.restart_s:.2g} s to restart" for c in crashes(run)]
    return ", then ".join(said) or "no crash"


def _draw_crash(axis, before: Attempt, after: Attempt, zero: int) -> None:
    crashed, again = (before.ended_ns - zero) / 1e9, (after.started_ns - zero) / 1e9
    axis.axvspan(crashed, again, color=palette.LIGHT, linewidth=0)
    begun = after.first_step or 0
    if before.steps_done > begun:
        until = after.started_ns
        for log in after.logs:
            until = max([until, *(step.end_ns for step in log.steps if step.step < before.steps_done)])
        axis.fill_between([again, (until - zero) / 1e9], begun, before.steps_done, color=palette.VERMILION, alpha=0.25,
                          hatch="///", linewidth=0)  # fmt: skip
    axis.scatter([crashed], [before.steps_done], marker="X", s=80, color=palette.VERMILION, zorder=4)


def departure(*records: Record) -> Picture:
    """Left: loss of each resumed run and of the one that nothing interrupted. Right: by how much they differ."""
    need(records)
    figure = Figure(figsize=(10.5, 4.2))
    left, right = figure.subplots(1, 2)
    words = []
    reference = global_losses(_reference(records[0]))
    left.plot(list(reference), list(reference.values()), color=palette.GREY, linewidth=4, alpha=0.5, label=REFERENCE)
    floor = 1e-9
    for index, (record, name) in enumerate(zip(records, names_of(records), strict=True)):
        left_out = str(record.config.get("leave_out", "nothing"))
        name = name if left_out == "nothing" else f"{record.variant} without {left_out}"
        style = {"color": palette.VARIANT_COLOUR[index % 6], "linestyle": palette.VARIANT_LINE[index % 6]}
        own, other = global_losses(record.run), global_losses(_reference(record))
        left.plot(list(own), list(own.values()), label=name, linewidth=1.4, **style)
        begun, step = resumed_at(record.run), _departs(record)
        common = [s for s in own if s in other]
        gaps = [max(abs(own[s] - other[s]), floor) for s in common]
        right.semilogy(common, gaps, label=name, linewidth=1.4, **style)
        if begun is not None:
            right.axvline(begun, linewidth=0.8, **style)
        if step is not None and step in common:
            right.scatter([step], [gaps[common.index(step)]], s=60, zorder=3, color=style["color"], edgecolor="black")
            right.annotate(f"step {step}", (step, gaps[common.index(step)]), xytext=(6, -12 * (index + 1)),
                           textcoords="offset points", fontsize=8.5, color=style["color"], zorder=4,
                           bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1})  # fmt: skip
        resumed = "not resumed" if begun is None else f"resumed at step {begun}"
        words.append(f"{name}: {resumed}, " + ("never departs" if step is None else f"departs at step {step}"))
    left.set_xlabel("step")
    left.set_ylabel("loss over the global batch")
    right.set_xlabel("step   (line: resume; dot: first that differs)")
    right.set_ylabel("|loss − loss uninterrupted|")
    right.set_ylim(floor / 3, None)
    right.axhspan(floor / 3, floor * 2, color=palette.LIGHT, linewidth=0)
    right.text(0.02, floor * 2.6, "equal to the bit", transform=right.get_yaxis_transform(), fontsize=8.5)
    left.legend(frameon=False, fontsize=8.5)
    plain_axes(left, right)
    return finish(figure, records, "Loss beside the uninterrupted run. " + "; ".join(words) + ".", top=0.98)


def _reference(record: Record) -> Run:
    if REFERENCE not in record.runs:
        raise UsageError(f"this record has no {REFERENCE} run to compare with; run it through the lab crash-recovery")
    return record.runs[REFERENCE]


def _departs(record: Record) -> int | None:
    run, reference = record.run, _reference(record)
    return first_difference(run, reference) if run.world_size == reference.world_size else None


def ablation(*records: Record) -> Picture:
    """A row for each run, a square for each step: equal to the uninterrupted run's to the bit, or not. Marks: predicted."""
    need(records)
    figure = Figure(figsize=(10.5, 1.5 + 0.36 * len(records)))
    axis = figure.subplots()
    last, words, labels = 1, [], []
    for row, record in enumerate(records):
        label = str(record.config.get("leave_out", "nothing"))
        labels.append(f"{record.variant}" if label == "nothing" else f"without {label}")
        equal = _equal_steps(record)
        begun, step = resumed_at(record.run), _departs(record)
        for number, same in equal.items():
            colour, hatch = (palette.BLUE, "") if same else (palette.VERMILION, "///")
            axis.barh(row, 0.92, left=number - 0.46, height=0.7, color=colour, hatch=hatch, edgecolor="white", linewidth=0)
        if begun is not None:
            axis.plot([begun - 0.5] * 2, [row - 0.45, row + 0.45], color="black", linewidth=2)
        predicted = _predicted(record, begun)
        if predicted is not None:
            axis.scatter([predicted], [row], marker="v", s=42, color="white", edgecolor="black", zorder=3)
        last = max([last, *equal])
        words.append(f"{labels[-1]}: " + ("never departs" if step is None else f"departs at step {step}"))
    axis.set_yticks(range(len(records)), labels, fontsize=9)
    axis.set_ylim(len(records) - 0.4, -0.6)
    axis.set_xlim(-0.7, last + 0.7)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlabel("step")
    handles = [
        Patch(facecolor=palette.BLUE, label="loss equal to the bit"),
        Patch(facecolor=palette.VERMILION, hatch="///", edgecolor="white", label="differs"),
        Line2D([], [], color="black", linewidth=2, label="resumed here"),
        Line2D([], [], marker="v", linestyle="", color="white", markeredgecolor="black", label="predicted departure"),
    ]
    height = figure.get_figheight()
    figure.legend(handles=handles, loc="upper center", ncols=4, frameon=False, fontsize=8.5)
    plain_axes(axis)
    return finish(figure, records, "What each state is for. " + "; ".join(words) + ".", top=1 - 0.3 / height)


def _equal_steps(record: Record) -> dict[int, bool]:
    own, other = losses(record.run), losses(_reference(record))
    steps = sorted({step for of_rank in steps_that_count(record.run).values() for step in of_rank})
    return {
        step: all(own[rank].get(step) == other[rank].get(step) for rank in own if rank in other)
        for step in steps
        if any(step in other.get(rank, {}) for rank in own)
    }


def _predicted(record: Record, begun: int | None) -> int | None:
    """Where the configuration says that the run departs, if it says what was left out."""
    state = str(record.config.get("leave_out", "nothing"))
    if state == "nothing" or not begun:
        return None
    total = int(np.max([step for of_rank in losses(_reference(record)).values() for step in of_rank])) + 1
    settings: Any = SimpleNamespace(**record.config)
    return departs_at(state, begun, settings, record.run.world_size, total)


FIGURES = {
    "crash-timeline": crash_timeline,
    "departure": departure,
    "ablation": ablation,
}
