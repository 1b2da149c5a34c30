"""The figures of what a machine can do: its roof, its link, its bandwidths and waits, and how it held still.

Each function takes one or more records of a survey and returns a Picture. Each prints the provenance of what it shows.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...detect.runs import names_of
from ...detect.survey.baseline import baseline_of
from ...detect.survey.repeats import Operation, launches, link_fit, link_repeats, operations
from ...errors import UsageError
from ...record.baseline import Baseline
from ...record.roles import Role
from ...record.schema import Record
from ...theory.ceilings import attainable, crossover_bytes, ridge, timing
from ...words import short
from .. import palette
from ..picture import Picture
from .common import finish, need, plain_axes, side_by_side

GIGA = 1e9
DTYPE_STYLE = {
    "fp32": (palette.BLUE, "-"),
    "tf32": (palette.PURPLE, (0, (5, 1))),
    "bf16": (palette.GREEN, "--"),
    "fp16": (palette.VERMILION, "-."),
}
INTENSITIES = np.geomspace(1 / 32, 4096, 200)


def roofline(*records: Record) -> Picture:
    """What a kernel can reach by its operations a byte: the slope is memory, the flat parts are arithmetic, the dots ran."""
    need(records)
    figure, axes = side_by_side(records, width=6.2, height=4.6)
    words = []
    for axis, record, name in zip(axes, records, names_of(records), strict=True):
        baseline, found = _baseline(record), operations(record.runs[Role.COMPUTE])
        _draw_roof(axis, baseline)
        for operation in found.values():
            if operation.flops:
                _draw_kernel(axis, operation)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xlim(INTENSITIES[0], INTENSITIES[-1] * 10)
        axis.set_xticks(
            [1 / 16, 1 / 4, 1, 4, 16, 64, 256, 1024, 4096], ["1/16", "1/4", *map(str, (1, 4, 16, 64, 256, 1024, 4096))]
        )
        axis.set_xlabel("arithmetic intensity: operations for each byte moved")
        axis.set_ylabel("GFLOP/s")
        axis.set_title(name if len(records) > 1 else "", loc="left", fontsize=11, fontweight="bold")
        plain_axes(axis)
        roofs = ", ".join(
            f"{dtype} {rate / GIGA:.3g} GFLOP/s above {ridge(rate, baseline.copy_bytes_per_s):.3g} operations a byte"
            for dtype, rate in baseline.matmul_flops_per_s.items()
        )
        words.append(f"{name}: memory moves {baseline.copy_bytes_per_s / GIGA:.3g} GB/s; {roofs}")
    handles = [
        Line2D([], [], marker="v", color=palette.GREY, linestyle="", label="ridge: memory and arithmetic take equally long"),
        Line2D([], [], marker="o", color="black", linestyle="", markersize=4, label="a kernel that ran here"),
    ]
    figure.legend(handles=handles, loc="upper center", ncols=2, frameon=False, fontsize=8.5, bbox_to_anchor=(0.5, 1.0))
    return finish(figure, records, "Roofline. " + "; ".join(words) + ".", top=0.95)


def _draw_roof(axis, baseline: Baseline) -> None:
    bandwidth = baseline.copy_bytes_per_s
    highest = max(baseline.matmul_flops_per_s.values())
    axis.plot(INTENSITIES, np.minimum(INTENSITIES * bandwidth, highest) / GIGA, color=palette.GREY, linewidth=1)
    axis.text(*(0.02, 0.97), f"slope: memory, {bandwidth / GIGA:.3g} GB/s", transform=axis.transAxes, fontsize=8.5, va="top")
    places = _apart(baseline.matmul_flops_per_s)
    for dtype, rate in baseline.matmul_flops_per_s.items():
        colour, line = DTYPE_STYLE[dtype]
        axis.plot(INTENSITIES, attainable(INTENSITIES, rate, bandwidth) / GIGA, color=colour, linestyle=line, linewidth=2)
        label = f"{dtype} {rate / GIGA:,.3g}"
        axis.text(INTENSITIES[-1] * 1.1, places[dtype] / GIGA, label, fontsize=8.5, color=colour, va="center")
        at = ridge(rate, bandwidth)
        axis.plot([at], [rate / GIGA], marker="v", color=colour, markersize=7)


def _apart(rates: dict[str, float], factor: float = 1.45) -> dict[str, float]:
    """Places for the labels of lines at these heights, from the top down, each at least this factor below the one before."""
    places: dict[str, float] = {}
    for name in sorted(rates, key=lambda name: -rates[name]):
        places[name] = min([rates[name], *(place / factor for place in places.values())])
    return places


def _draw_kernel(axis, operation: Operation) -> None:
    intensity = operation.flops / operation.num_bytes
    axis.plot([intensity], [operation.flops_per_s / GIGA], marker="o", color="black", markersize=4, zorder=4)
    name = operation.name.replace("matmul-", f"{operation.size}³ ")
    paper = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5}  # a line may pass behind
    axis.annotate(
        name, (intensity, operation.flops_per_s / GIGA), xytext=(5, -11), textcoords="offset points", fontsize=8, zorder=4,
        bbox=paper,
    )  # fmt: skip


def link(*records: Record) -> Picture:
    """All-reduce time by message size, medians with the range of repeats and the fit; and the rate that each reaches."""
    need(records)
    figure = Figure(figsize=(10.5, 4.4))
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    words = []
    for index, (record, name) in enumerate(zip(records, names_of(records), strict=True)):
        fit = link_fit(record)
        if fit is None:
            raise UsageError(f"{name} has no link to draw: measure on 2 ranks or more, as in lab.run(ranks=2)")
        colour, line = palette.VARIANT_COLOUR[(index + 1) % 6], palette.VARIANT_LINE[index % 6]
        repeats = link_repeats(record.run)
        low = fit.measured_s - [seconds.min() for seconds in repeats.values()]
        high = [seconds.max() for seconds in repeats.values()] - fit.measured_s
        bandwidth = "not resolved" if fit.bytes_per_s is None else f"{fit.bytes_per_s / GIGA:.3g} GB/s"
        said = f"{fit.world_size} ranks: α {fit.alpha_s * 1e6:,.0f} µs, β {bandwidth}"
        equal = crossover_bytes(fit.world_size, fit.alpha_s, fit.bytes_per_s) if fit.bytes_per_s else None
        if equal is not None:
            said += f", alike at {equal / 1024:,.0f} KiB"
        left.errorbar(
            fit.sizes, fit.measured_s * 1e3, yerr=np.array([low, high]) * 1e3, fmt="os^Dvx"[index % 6], color=colour,
            markersize=5, linewidth=1, capsize=2, label=f"{fit.world_size} ranks, measured (median, range)",
        )  # fmt: skip
        left.plot(fit.sizes, fit.predicted_s * 1e3, color=colour, linestyle=line, linewidth=1.8, label=said)
        off = min(fit.residual_max, 0.95)
        band = fit.predicted_s[:, None] * 1e3 / np.array([1 + off, 1 - off])
        left.fill_between(fit.sizes, band[:, 0], band[:, 1], color=colour, alpha=0.12, linewidth=0)
        right.plot(fit.sizes, fit.sent_bytes / fit.measured_s / GIGA, "os^Dvx"[index % 6], color=colour, markersize=5)
        right.plot(fit.sizes, fit.sent_bytes / fit.predicted_s / GIGA, color=colour, linestyle=line, linewidth=1.8)
        if fit.bytes_per_s:
            right.axhline(fit.bytes_per_s / GIGA, color=colour, linewidth=0.8, linestyle=":")
        words.append(f"{name}: {said}, off by up to {fit.residual_max:.0%}")
        if equal is not None:
            left.axvline(equal, color=colour, linewidth=0.8, linestyle=":")
    for axis in (left, right):
        axis.set_yscale("log")
        axis.set_xscale("log", base=2)
        axis.set_xlabel("message in bytes")
        axis.set_xticks([2**10, 2**14, 2**18, 2**22], ["1 KiB", "16 KiB", "256 KiB", "4 MiB"])
    left.set_ylabel("all-reduce, ms")
    right.set_ylabel("a rank sends, GB/s   (dotted: β)")
    _explain_link(figure, left)
    plain_axes(left, right)
    top = 0.92 - 0.05 * len(records)
    return finish(figure, records, "All-reduce time by message size. " + "; ".join(words) + ".", top=top)


def _explain_link(figure: Figure, axis) -> None:
    """The legend, above the axes, where it meets no range: what was measured at the left, its fit at the right."""
    lines, labels = axis.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda at: "measured" not in labels[at])
    figure.legend(
        [lines[at] for at in order],
        [labels[at] for at in order],
        loc="upper center",
        ncols=2,
        frameon=False,
        fontsize=8.5,
        title="band: how far the fit is off at most · dotted at the left: α and β cost alike",
        title_fontsize=8,
        bbox_to_anchor=(0.5, 1.0),
    )


def bandwidths(*records: Record) -> Picture:
    """Bytes a second from memory down to random reads, and the waits before the first byte: points on logarithmic axes."""
    need(records)
    names = names_of(records)
    columns = [_rungs(_baseline(record)) for record in records]
    figure = Figure(figsize=(10.5, 2.2 + 0.5 * len(records)))
    for axis, part, unit in zip(figure.subplots(1, 2), (0, 1), ("GB/s", "ms"), strict=True):
        rows = list(dict.fromkeys(row for column in columns for row in column[part]))
        for index, column in enumerate(columns):
            values = [column[part].get(row, np.nan) for row in rows]
            places = np.arange(len(rows)) + (index - (len(records) - 1) / 2) * 0.7 / len(records)
            axis.plot(values, places, "osD^vP"[index % 6], color=palette.VARIANT_COLOUR[(index + 1) % 6], markersize=8,
                      label=names[index])  # fmt: skip
            for value, place in zip(values, places, strict=True):
                if np.isfinite(value):
                    axis.annotate(
                        short(value), (value, place), (8, 0), textcoords="offset points", fontsize=8.5, va="center"
                    )
        axis.set_yticks(range(len(rows)), rows)
        axis.set_ylim(len(rows) - 0.5, -0.5)
        axis.set_xscale("log")
        axis.margins(x=0.25)
        axis.grid(axis="y", color=palette.LIGHT, linewidth=0.8)
        axis.set_axisbelow(True)
        axis.set_xlabel(unit)
        plain_axes(axis)
        if len(records) > 1:
            axis.legend(frameon=False, fontsize=8)
    words = [
        f"{name}: "
        + ", ".join(
            f"{row} {short(value)} {unit}" for part, unit in ((0, "GB/s"), (1, "ms")) for row, value in c[part].items()
        )
        for name, c in zip(names, columns, strict=True)
    ]
    return finish(figure, records, "Bandwidths and waits. " + "; ".join(words) + ".", top=0.98)


def _rungs(baseline: Baseline) -> tuple[dict[str, float], dict[str, float]]:
    read_s = baseline.storage_random_read_s
    rates = {
        "memory copy": baseline.copy_bytes_per_s,
        "link (β)": baseline.link_bytes_per_s,
        "storage, in order": baseline.storage_sequential_bytes_per_s,
        "storage, 4 KiB at random": 4096 / read_s if read_s else None,
    }
    waits = {"link, a step (α)": baseline.link_alpha_s, "storage, a read": read_s, "launch of ranks": baseline.launch_s}
    return (
        {name: rate / GIGA for name, rate in rates.items() if rate},
        {name: wait * 1e3 for name, wait in waits.items() if wait},
    )


def repeats(*records: Record) -> Picture:
    """Every repeat of every measure beside the best of its kind: how still the machine held."""
    need(records)
    rows = [_rows_of(record) for record in records]
    figure, axes = side_by_side(records, width=6.2, height=1.5 + 0.3 * max(map(len, rows)))
    words = []
    for axis, record_rows, name in zip(axes, rows, names_of(records), strict=True):
        for place, seconds in enumerate(record_rows.values()):
            summary = timing(seconds)
            axis.plot(
                seconds / summary.best_s, np.full(len(seconds), place), "o", color=palette.BLUE, markersize=4, alpha=0.5
            )
            axis.plot([summary.median_s / summary.best_s], [place], "|", color=palette.VERMILION, markersize=14, mew=2.5)
        axis.set_yticks(range(len(record_rows)), list(record_rows))
        axis.invert_yaxis()
        axis.axvline(1, color=palette.GREY, linewidth=0.8)
        axis.set_xscale("log")
        highest = max(float(s.max() / s.min()) for s in record_rows.values())
        ticks = [tick for tick in (1, 1.5, 2, 3, 5, 10, 30, 100, 300, 1000) if tick <= max(highest, 1.5) * 1.1]
        axis.set_xticks(ticks, [f"{tick:g}×" for tick in ticks])
        axis.minorticks_off()
        axis.set_xlabel("time of a repeat over that of the best   ( | the median )")
        axis.set_title(name if len(records) > 1 else "", loc="left", fontsize=11, fontweight="bold")
        plain_axes(axis)
        spreads = {row: timing(seconds).spread for row, seconds in record_rows.items()}
        worst = max(spreads, key=lambda row: spreads[row])
        words.append(f"{name}: the median {worst} took {1 / (1 - spreads[worst]):.2f} times the best, the most of all")
    return finish(figure, records, "Repeats beside the best. " + "; ".join(words) + ".", top=0.98)


def _rows_of(record: Record) -> dict[str, np.ndarray]:
    """Seconds of each repeat, by what was repeated."""
    found = {
        name: operation.seconds
        for role in ("compute", "storage")
        for name, operation in operations(record.runs.get(role)).items()
    }
    of_link = link_repeats(record.runs[Role.LINK]) if Role.LINK in record.runs else {}
    found |= {f"all-reduce, {size // 1024:,} KiB": of_link[size] for size in [*of_link][:: max(1, len(of_link) - 1)]}
    if launches(record):
        found["launch"] = np.array(launches(record))
    if not found:
        raise UsageError(f"{record.variant} has no repeats to draw; run the lab `start-here`")
    return found


def _baseline(record: Record) -> Baseline:
    found = baseline_of(record)
    if found is None:
        raise UsageError(f"{record.variant} has no products and copies to draw; run all of `start-here`")
    return found


FIGURES = {
    "roofline": roofline,
    "link": link,
    "bandwidths": bandwidths,
    "repeats": repeats,
}
