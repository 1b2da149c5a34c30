"""The figures of sharded state: what each rank keeps over a step, what goes into which collective, what a step takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ...detect.runs import names_of
from ...detect.sharding.measures import (
    CATEGORIES,
    INSTANTS,
    fast_steps_s,
    kept,
    losses,
    operations,
    paper_bytes,
    paper_state,
    strategy_of,
    strategy_runs,
    timed_steps_s,
    wire,
)
from ...detect.sharding.summary import AT_THE_PEAK, UNTOLD, over_a_step, peak, psi, room, room_said, units
from ...errors import UsageError
from ...record.roles import Role
from ...record.schema import Record, Run
from ...theory.strategies import STRATEGIES
from .. import palette
from ..picture import Picture
from .common import finish, legend_above, need, plain_axes

COLOUR = {
    "parameters": palette.BLUE,
    "gradients": palette.ORANGE,
    "optimizer_state": palette.GREEN,
    "unsharded": palette.VERMILION,
    "buffers": palette.LIGHT,
    UNTOLD: palette.GREY,
}
HATCH = {"parameters": "", "gradients": "//", "optimizer_state": "..", "unsharded": "xx", "buffers": "--", UNTOLD: ""}
OPERATION_COLOUR = {
    "all_gather": palette.VERMILION,
    "broadcast": palette.PURPLE,
    "reduce_scatter": palette.SKY,
    "all_reduce": palette.BLUE,
}
OPERATION_HATCH = {"all_gather": "xx", "broadcast": "..", "reduce_scatter": "//", "all_reduce": ""}
COLUMNS = 4


def _entries(records: Sequence[Record]) -> list[tuple[str, Record, Run]]:
    """(title, record, run) of all that is to be drawn: every strategy of a comparison, else the run under study."""
    need(records)
    found = []
    for record, name in zip(records, names_of(records), strict=True):
        runs = strategy_runs(record)
        if Role.VARIANT not in record.runs and len(runs) > 1:
            found += [(strategy, record, run) for strategy, run in runs.items()]
        elif strategy_of(record.run) in STRATEGIES and psi(record.run):
            own = strategy_of(record.run)
            found.append((name if own in name else f"{name}: {own}", record, record.run))
        else:
            raise UsageError(f"{name} declared no strategy to draw; draw broken, fixed, compare or a strategy's own variant")
    return found


def memory_over_a_step(*records: Record) -> Picture:
    """Bytes a parameter that each rank keeps, stacked by category, at each instant of a step and when it keeps the most.

    At each instant a thin bar is a rank. Dashed: the paper's formula for the stage; dotted: the memory of a device, and how
    that was chosen. Of more than four strategies the most that they keep is drawn, a bar each.
    """
    entries = [entry for entry in _entries(records) if any(instant in kept(entry[2]) for instant in INSTANTS[:4])]
    if not entries:
        raise UsageError("nothing was looked at over a step in what is to be drawn; draw a variant that is no trap")
    if len(entries) > COLUMNS:
        return _memory_at_the_peak(records, entries)
    rows = -(-len(entries) // COLUMNS)
    columns = min(COLUMNS, len(entries))
    figure = Figure(figsize=(max(7.5, 3.7 * columns), 0.9 + 2.9 * rows))
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True)
    words, most = [], 0.0
    for axis, (title, _, run) in zip(axes.flat, entries, strict=False):
        _draw_memory(axis, title, run)
        top = peak(run) or 0.0
        most = max(most, top)
        words.append(f"{title}: {top:.2f} bytes a parameter at the most")
    for axis in list(axes.flat)[len(entries) :]:
        axis.set_visible(False)
    rooms = [room(run) for _, _, run in entries]
    axes[0][0].set_ylim(0, 1.12 * max(most, *(space for space in rooms if space < 2 * most), most))
    for row in axes:
        row[0].set_ylabel("bytes a parameter")
    said = _rooms_said(entries)
    _memory_legend(figure, said, _category_handles(entries))
    alt = "Memory over a step, by rank and category. " + "; ".join(words) + "."
    return finish(figure, records, alt, top=1 - (0.24 + 0.18 * _legend_rows(figure)) / figure.get_figheight())


def _memory_at_the_peak(records: Sequence[Record], entries: list[tuple[str, Record, Run]]) -> Picture:
    """One bar a strategy: what the rank that keeps the most keeps at its peak; a line is what it keeps between two steps."""
    figure = Figure(figsize=(10.5, 1.6 + 0.42 * len(entries)))
    axis = figure.subplots()
    words = []
    for place, (title, _, run) in enumerate(entries):
        instants = over_a_step(run)
        highest = instants.get(AT_THE_PEAK)
        if highest is None:
            highest = max(instants.values(), key=lambda bars: bars.sum(axis=1).max())
        most = highest[highest.sum(axis=1).argmax()]
        left = 0.0
        for category, width in zip((*CATEGORIES, UNTOLD), most, strict=True):
            axis.barh(
                place, width, 0.62, left, color=COLOUR[category], hatch=HATCH[category], edgecolor="white", linewidth=0
            )
            left += width
        between = float(next(iter(instants.values())).sum(axis=1).max())
        axis.plot([between, between], [place - 0.4, place + 0.4], color="black", linewidth=1.6)
        paper = paper_state(run)
        if paper is not None:
            axis.plot(paper.total / psi(run), place, marker="D", color=palette.YELLOW, markeredgecolor="black", markersize=6)
        axis.annotate(f"{left:.2f}", (left, place), (6, 0), textcoords="offset points", fontsize=8.5, va="center")
        words.append(f"{title}: {left:.2f} bytes a parameter at the most, {between:.2f} before the forward pass")
    said = _rooms_said(entries)
    for space in dict.fromkeys(room(run) for _, _, run in entries if room(run)):
        axis.axvline(space, color=palette.GREY, linewidth=1.4, linestyle=":")
    axis.set_yticks(range(len(entries)), [title for title, _, _ in entries])
    axis.invert_yaxis()
    axis.set_xlim(0, 1.1 * axis.get_xlim()[1])
    axis.set_xlabel("bytes a parameter, on the rank that keeps the most, at the instant when it does")
    plain_axes(axis)
    handles = _category_handles(entries)
    handles += [
        Line2D([], [], color="black", linewidth=1.6, label="before the forward pass"),
        Line2D([], [], color=palette.YELLOW, markeredgecolor="black", marker="D", linestyle="", label="the paper's formula"),
    ]
    if said:
        handles.append(Line2D([], [], color=palette.GREY, linestyle=":", label=said))
    top = legend_above(figure, handles, [handle.get_label() for handle in handles], columns=5)
    return finish(figure, records, "Memory at the peak, by category. " + "; ".join(words) + ".", top=top)


def _categories(run: Run) -> set[str]:
    most = np.max([bars.max(axis=0) for bars in over_a_step(run).values()], axis=0)
    return {name for name, value in zip((*CATEGORIES, UNTOLD), most, strict=True) if value > 0.01}


def _draw_memory(axis: Any, title: str, run: Run) -> None:
    instants, ranks = over_a_step(run), run.world_size
    width = 0.84 / ranks
    for place, bars in enumerate(instants.values()):
        x = place - 0.42 + width * (np.arange(ranks) + 0.5)
        bottom = np.zeros(ranks)
        for at, category in enumerate((*CATEGORIES, UNTOLD)):
            axis.bar(
                x, bars[:, at], width * (0.9 if ranks <= 16 else 1.0), bottom, color=COLOUR[category],
                hatch=HATCH[category] if ranks <= 8 else "", edgecolor="white", linewidth=0,
            )  # fmt: skip
            bottom += bars[:, at]
        axis.annotate(
            f"{bottom.max():.2f}", (place, bottom.max()), (0, 3), textcoords="offset points", ha="center", va="bottom",
            fontsize=8, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85},
        )  # fmt: skip
    paper, space = paper_state(run), room(run)
    if paper is not None:
        axis.axhline(paper.total / psi(run), color="black", linewidth=1, linestyle="--")
    if space:
        axis.axhline(space, color=palette.GREY, linewidth=1.4, linestyle=":")
    axis.set_title(title, loc="left", fontsize=10.5, fontweight="bold")
    axis.set_xticks(range(len(instants)), list(instants), fontsize=7)
    axis.set_xlim(-0.6, len(instants) - 0.4)
    plain_axes(axis)


def _rooms_said(entries: Sequence[tuple[str, Record, Run]]) -> str:
    """How the memory of a device was chosen, each way once."""
    return ", or ".join(dict.fromkeys(room_said(record) for _, record, run in entries if room(run)))


def _category_handles(entries: Sequence[tuple[str, Record, Run]]) -> list[Any]:
    """For a legend: the categories of which any run keeps something."""
    found = {category for _, _, run in entries for category in _categories(run)}
    return [
        Patch(facecolor=COLOUR[name], hatch=HATCH[name], edgecolor="white", label=name.replace("_", " "))
        for name in (*CATEGORIES, UNTOLD)
        if name in found
    ]


def _memory_legend(figure: Figure, room: str, handles: list[Any]) -> None:
    handles.append(figure.axes[0].plot([], [], color="black", linestyle="--", label="the paper's formula")[0])
    if room:
        handles.append(figure.axes[0].plot([], [], color=palette.GREY, linestyle=":", label=room.replace(" (", "\n("))[0])
    rows = _legend_rows(figure)
    figure.legend(handles=handles, loc="upper center", ncols=-(-len(handles) // rows), frameon=False, fontsize=8.5)


def _legend_rows(figure: Figure) -> int:
    return 1 if figure.get_figwidth() > 10 else 2


def traffic_by_collective(*records: Record) -> Picture:
    """What a rank sends in a step, in units of Ψ(W-1)/W: dispatched, by operation; marks for the paper and the wire."""
    entries = _entries(records)
    figure = Figure(figsize=(10.5, 1.5 + 0.52 * len(entries)))
    axis = figure.subplots()
    words, kinds, most, wired = [], set(), 3.0, False
    for row, (title, _, run) in enumerate(entries):
        left, by_paper, counted = 0.0, paper_bytes(run), wire(run)
        for op in operations(run):
            value = units(run, op.sent_bytes)
            kinds.add(op.kind)
            colour = OPERATION_COLOUR.get(op.kind, palette.GREY)
            axis.barh(row, value, 0.62, left, color=colour, hatch=OPERATION_HATCH.get(op.kind, ""), edgecolor="white")
            if value > 0.22:
                box = {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.85}
                axis.text(left + value / 2, row, f"{value:.2f}", ha="center", va="center", fontsize=8, bbox=box)
            left += value
        said = f"{title}: {left:.2f} dispatched"
        if by_paper is not None:
            axis.plot([units(run, by_paper)], [row], "|", color="black", markersize=22, markeredgewidth=2.5)
            said += f", {units(run, by_paper):.2f} by the paper"
        if counted is not None:
            wired = True
            axis.plot(
                [units(run, counted.rank_bytes)], [row], "D", color=palette.YELLOW, markeredgecolor="black", markersize=7
            )
            said += f", {units(run, counted.rank_bytes):.2f} on the wire"
            most = max(most, units(run, counted.rank_bytes))
        most = max(most, left)
        words.append(said)
    axis.set_yticks(range(len(entries)), [title for title, _, _ in entries])
    axis.set_ylim(len(entries) - 0.45, -0.55)
    axis.set_xlim(0, most * 1.06)
    axis.set_xlabel("sent by a rank in a step, in units of Ψ(W−1)/W elements")
    plain_axes(axis)
    _traffic_legend(figure, axis, kinds, wired)
    return finish(figure, records, "Traffic by collective. " + "; ".join(words) + ".", top=1 - 0.36 / figure.get_figheight())


def _traffic_legend(figure: Figure, axis: Any, kinds: set[str], wired: bool) -> None:
    handles: list[Any] = [
        Patch(facecolor=OPERATION_COLOUR.get(kind, palette.GREY), hatch=OPERATION_HATCH.get(kind, ""), edgecolor="white",
              label=kind.replace("_", "-"))
        for kind in (*OPERATION_COLOUR, *sorted(kinds - set(OPERATION_COLOUR)))
        if kind in kinds
    ]  # fmt: skip
    handles.append(axis.plot([], [], "|", color="black", markersize=12, markeredgewidth=2.5, label="the paper")[0])
    if wired:
        label = "on the wire, with headers"
        handles.append(axis.plot([], [], "D", color=palette.YELLOW, markeredgecolor="black", label=label)[0])
    figure.legend(handles=handles, loc="upper center", ncols=len(handles), frameon=False, fontsize=8.5)


def step_on_two_links(*records: Record) -> Picture:
    """The time of a step by strategy: on the slow link, and where it was run on the fast one too. A dot is a step."""
    need(records)
    rows: list[tuple[str, np.ndarray, np.ndarray | None, str]] = []
    for record, name in zip(records, names_of(records), strict=True):
        fast = fast_steps_s(record)
        for strategy, run in strategy_runs(record).items():
            title = strategy if len(records) == 1 else f"{name}: {strategy}"
            rows.append((title, timed_steps_s(run), fast.get(strategy), strategy))
    rows = [row for row in rows if len(row[1])]
    if not rows:
        raise UsageError("no steps of a strategy were timed in what is to be drawn; draw a run of the lab zero-stages")
    figure = Figure(figsize=(10.5, 1.5 + 0.55 * len(rows)))
    axis = figure.subplots()
    longest = max(float(np.quantile(times, 0.9)) for _, slow, fast, _ in rows for times in (slow, fast) if times is not None)
    words, both = [], any(fast is not None for _, _, fast, _ in rows)
    for at, (title, slow, fast, _) in enumerate(rows):
        words.append(
            f"{title}: {np.median(slow) * 1e3:.0f} ms" + (f", fast {np.median(fast) * 1e3:.0f}" if fast is not None else "")
        )
        _draw_times(axis, at - (0.19 if both else 0), slow, palette.VERMILION, "", 0.34)
        if fast is not None:
            _draw_times(axis, at + 0.19, fast, palette.SKY, "//", 0.34)
    axis.set_yticks(range(len(rows)), [title for title, *_ in rows])
    axis.set_ylim(len(rows) - 0.45, -0.55)
    axis.set_xlim(0, longest * 1e3 * 1.15)
    axis.set_xlabel("ms a step, the median; a dot is a step")
    linked = records[0].network is not None
    handles: list[Any] = [Patch(facecolor=palette.VERMILION, label="the hosts' link" if linked else "as it was run")]
    if both:
        handles.append(Patch(facecolor=palette.SKY, hatch="//", edgecolor="white", label="no hosts, no limit"))
    figure.legend(handles=handles, loc="upper center", ncols=2, frameon=False, fontsize=8.5)
    plain_axes(axis)
    return finish(figure, records, "Time of a step. " + "; ".join(words) + ".", top=1 - 0.36 / figure.get_figheight())


def _draw_times(axis: Any, y: float, times: np.ndarray, colour: str, hatch: str, height: float) -> None:
    axis.barh(y, np.median(times) * 1e3, height, color=colour, hatch=hatch, edgecolor="white")
    axis.plot(times * 1e3, np.full(len(times), y), "o", color="black", markersize=2.5, clip_on=True)


def loss_beside_one(*records: Record) -> Picture:
    """The loss of the global batch by step; the thin black line is one process on the same batches."""
    need(records)
    figure = Figure(figsize=(10.5, 3.9))
    axis = figure.subplots()
    words, drawn = [], []
    for index, (record, name) in enumerate(zip(records, names_of(records), strict=True)):
        runs = strategy_runs(record) if Role.VARIANT not in record.runs else {}
        for number, (title, run) in enumerate((runs or {name: record.run}).items()):
            values = losses(run)
            if not len(values):
                raise UsageError(f'{title} recorded no loss to draw; record probe.scalar("loss_local", …) in each step')
            style = (index + number) % 6
            axis.plot(
                values, linewidth=2, label=title, color=palette.VARIANT_COLOUR[style], linestyle=palette.VARIANT_LINE[style]
            )
            words.append(f"{title}: {values[-1]:.3f} at the end")
        alone = losses(record.runs[Role.SINGLE]) if Role.SINGLE in record.runs else np.array([])
        if len(alone) and not any(np.array_equal(alone, other) for other in drawn):
            axis.plot(alone, color="black", linewidth=0.9, label="one process" if not drawn else None)
            drawn.append(alone)
    axis.set_xlabel("step")
    axis.set_ylabel("loss of the global batch")
    axis.legend(frameon=False, fontsize=8.5, ncols=2)
    plain_axes(axis)
    return finish(figure, records, "Loss beside one process. " + "; ".join(words) + ".", top=0.98)


FIGURES = {
    "memory-over-a-step": memory_over_a_step,
    "traffic-by-collective": traffic_by_collective,
    "step-on-two-links": step_on_two_links,
    "loss-beside-one": loss_beside_one,
}
