"""The figures of precision, drawn from records: loss beside fp32, gradients beside what a format holds, scale, speed."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from ...detect.loss import SMOOTHED, smoothed
from ...detect.precision.measures import (
    final_loss,
    first_nonfinite,
    gradient_exponents,
    losses,
    scaling,
    share_below,
    speed,
    zero_shares,
)
from ...detect.runs import names_of
from ...errors import UsageError
from ...record.roles import Role
from ...record.schema import Record, Run
from ...theory.formats import BF16, FORMATS, FP16
from .. import palette
from ..picture import Picture
from .common import finish, legend_over, need, plain_axes, side_by_side

LOWEST_DRAWN, HIGHEST_DRAWN = -62, 24
"""Powers of two between which gradients are drawn; what is smaller or larger is counted in the outermost bar."""


def _style(index: int) -> dict[str, Any]:
    return {"color": palette.VARIANT_COLOUR[index % 6], "linestyle": palette.VARIANT_LINE[index % 6]}


def loss_beside_fp32(*records: Record) -> Picture:
    """The loss by step; thin lines are fp32 on the same batches from the same weights, a cross is where a loss was NaN.

    One or two records share their axes. More have axes of their own with one scale of the loss: lines that lie on each other
    would tell nothing.
    """
    need(records)
    apart = len(records) > 2
    figure = Figure(figsize=(10.5, 3.9))
    axes = figure.subplots(1, len(records), sharey=True) if apart else [figure.subplots()] * len(records)
    words = []
    drawn: list[np.ndarray] = []
    for index, (axis, record, name) in enumerate(zip(axes, records, names_of(records), strict=True)):
        _draw_loss(axis, record, name, _style(index))
        reference = record.runs.get(Role.REFERENCE)
        fp32 = losses(reference) if reference else np.array([])
        if len(fp32) and (apart or not any(np.array_equal(fp32, other) for other in drawn)):
            label = "fp32, same batches" if apart or len(records) == 1 else f"fp32, same batches as {name}"
            colour = "black" if apart or not drawn else palette.GREY
            axis.plot(smoothed(fp32), color=colour, linewidth=0.9, label=label)
            drawn.append(fp32)
        words.append(f"{name}: {_ending(record.run)}" + (f", in fp32 {_ending(reference)}" if reference else ""))
    for axis in dict.fromkeys(axes):
        axis.set_xlabel("step")
        axis.set_ylim(bottom=0)
        if apart:
            legend_over(axis, letters=34)
        else:
            axis.legend(frameon=False, fontsize=9)
        plain_axes(axis)
    axes[0].set_ylabel(f"loss without its weight\n(mean of {SMOOTHED} steps)")
    return finish(figure, records, "Loss beside fp32. " + "; ".join(words) + ".", top=0.98)


def _draw_loss(axis, record: Record, name: str, style: dict[str, Any]) -> None:
    values = losses(record.run)
    if not np.isfinite(values).any():
        raise UsageError(f'{name} recorded no finite loss to draw; record probe.scalar("loss_local", …) in each step')
    axis.plot(smoothed(values), linewidth=2.2, label=name, **style)
    if first_nonfinite(record.run) is not None:
        last = int(np.flatnonzero(np.isfinite(values))[-1])
        axis.plot([last], [values[last]], marker="X", markersize=11, color=style["color"], linestyle="")
        axis.annotate("NaN from here on", (last, values[last]), (12, 4), textcoords="offset points", fontsize=9)


def _ending(run: Run) -> str:
    bad, value = first_nonfinite(run), final_loss(run)
    if bad is not None:
        return f"{bad.what} not finite from step {bad.step} on"
    return f"loss {value:.3g} at the end" if value is not None else "no loss"


def gradient_range(*records: Record) -> Picture:
    """How large gradients are, in powers of two, over what each format can hold; zeros are not drawn.

    Filled: fp32's gradients, as they truly are. Line: what came to the optimizer. Dashed: fp32's times the scaler's scale.
    """
    need(records)
    figure, axes = side_by_side(records, width=6.2, height=4.4)
    words, scaled = [], False
    for axis, record, name in zip(axes, records, names_of(records), strict=True):
        reference = record.runs.get(Role.REFERENCE)
        true = gradient_exponents(reference) if reference else None
        own = gradient_exponents(record.run)
        if true is None or own is None:
            raise UsageError(f"{name} has no gradients to draw, of its own and of fp32; run it through the lab precision")
        total = true[1].sum()
        axis.fill_between(*_steps(*true, total), step="post", color=palette.SKY, alpha=0.75, linewidth=0)
        axis.step(*_steps(*own, total), where="post", color=palette.VERMILION, linewidth=1.8)
        scaler = scaling(record.run)
        if scaler is not None:
            scaled = True
            moved = (true[0] + round(np.log2(scaler.scale[-1])), true[1])
            axis.step(*_steps(*moved, total), where="post", color=palette.GREEN, linewidth=1.4, linestyle="--")
        lost = share_below(reference, FP16) if reference else None
        top = axis.get_ylim()[1]
        axis.set_ylim(-0.42 * top, top)
        _draw_formats(axis, top)
        axis.set_title(name, loc="left", fontsize=11, fontweight="bold")
        axis.set_xlabel("size of a gradient element", fontsize=9)
        axis.set_ylabel("share of the gradient elements", fontsize=9)
        words.append(f"{name}: {lost:.0%} of fp32's gradients other than 0 would be 0 in fp16")
        axis.text(0.02, 0.97, f"{lost:.0%} of these would\nbe 0 in fp16", transform=axis.transAxes, va="top", fontsize=9)
    handles: list[Any] = [
        Patch(facecolor=palette.SKY, label="fp32's gradients"),
        Patch(facecolor="none", edgecolor=palette.VERMILION, linewidth=1.8, label="came to the optimizer"),
        *([Patch(facecolor="none", edgecolor=palette.GREEN, linestyle="--", label="fp32's × last scale")] if scaled else []),
        Patch(facecolor=palette.GREY, label="format: all digits"),
        Patch(facecolor=palette.LIGHT, hatch="///", label="fewer digits"),
    ]
    figure.legend(handles=handles, loc="upper center", ncols=len(handles), frameon=False, fontsize=8)
    return finish(figure, records, "Sizes of gradients and ranges of formats. " + "; ".join(words) + ".", top=0.92)


def _steps(powers: np.ndarray, counts: np.ndarray, total: int) -> tuple[np.ndarray, np.ndarray]:
    """(left edges, share of elements), with all that lies outside the drawn range in its outermost bars."""
    edges = np.arange(LOWEST_DRAWN, HIGHEST_DRAWN + 1)
    shares = np.zeros(len(edges))
    np.add.at(shares, np.clip(powers, LOWEST_DRAWN, HIGHEST_DRAWN) - LOWEST_DRAWN, counts / total)
    return edges, shares


def _draw_formats(axis, top: float) -> None:
    """A bar for each format below the histogram: what it can hold with all its digits, and with fewer."""
    rows = (FORMATS[0], BF16, FP16)
    for row, form in enumerate(rows):
        y, height = -0.42 * top + (2 - row) * 0.125 * top, 0.09 * top
        low, normal, high = (np.log2(v) for v in (form.smallest_subnormal, form.smallest_normal, form.largest))
        axis.add_patch(Rectangle((normal, y), high - normal, height, facecolor=palette.GREY, linewidth=0))
        axis.add_patch(
            Rectangle((low, y), normal - low, height, facecolor=palette.LIGHT, hatch="///", edgecolor="white", linewidth=0)
        )
        name = "fp32, tf32" if form.name == "fp32" else form.name
        axis.text(
            max(normal, LOWEST_DRAWN) + 1, y + height / 2, name, va="center", fontsize=8.5, color="white", weight="bold"
        )
    edge = np.log2(FP16.smallest_subnormal) - 1
    axis.plot([edge, edge], [-0.42 * top, top], color="black", linewidth=0.9, linestyle=":")
    axis.text(edge - 0.5, -0.37 * top, "0 in fp16 ◂", ha="right", va="center", fontsize=8.5)
    ticks = [-60, -50, -40, -24, -14, 0, 15]
    axis.set_xticks(ticks, [f"$2^{{{power}}}$" for power in ticks], fontsize=8.5)
    axis.set_yticks([tick for tick in axis.get_yticks() if 0 <= tick <= top])
    axis.set_yticks(axis.get_yticks(), [f"{tick:.0%}" for tick in axis.get_yticks()], fontsize=8.5)
    axis.set_xlim(LOWEST_DRAWN, HIGHEST_DRAWN)
    axis.axhline(0, color="black", linewidth=0.8)
    plain_axes(axis)


def zeros_and_scale(*records: Record) -> Picture:
    """Left: the share of gradient elements that are exactly 0, by update, with fp32's thin. Right: the scaler's scale."""
    need(records)
    figure = Figure(figsize=(10.5, 3.9 + 0.3 * len(records)))
    left, right = figure.subplots(1, 2)
    words, scaled = [], False
    drawn: list[np.ndarray] = []
    for index, (record, name) in enumerate(zip(records, names_of(records), strict=True)):
        zeros = zero_shares(record.run)
        if not len(zeros) and scaling(record.run) is None:
            raise UsageError(
                f"{name} recorded no gradients to draw; record at each update the counts updates, gradient_elements and "
                "gradient_zeros"
            )
        said = f"{zeros.mean():.0%} of gradient elements are 0" if len(zeros) else "no update"
        left.plot(100 * zeros, linewidth=2, label=f"{name}: {said}", **_style(index))
        reference = record.runs.get(Role.REFERENCE)
        fp32 = zero_shares(reference) if reference else np.array([])
        if len(fp32) and not any(np.array_equal(fp32, other) for other in drawn):
            left.plot(100 * fp32, color="black", linewidth=0.9, label="fp32" if not drawn else None)
            drawn.append(fp32)
        scaler = scaling(record.run)
        if scaler is not None:
            scaled = True
            skipped = scaler.skipped
            skips = f"{int(skipped.sum())} of {len(skipped)} steps skipped"
            right.step(
                scaler.step, np.log2(scaler.scale), where="post", linewidth=2, label=f"{name}: {skips}", **_style(index)
            )
            right.plot(scaler.step[skipped], np.log2(scaler.scale[skipped]), "x", color="black", markersize=7)
            said += f", {skips}"
        words.append(f"{name}: {said}")
    _label_zeros_and_scale(left, right, scaled)
    plain_axes(left, right)
    return finish(figure, records, "Zero gradients and the scale. " + "; ".join(words) + ".", top=0.97)


def _label_zeros_and_scale(left, right, scaled: bool) -> None:
    left.set_xlabel("update")
    left.set_ylabel("gradient elements that are exactly 0, %")
    left.set_ylim(0, 102)
    legend_over(left)
    right.set_xlabel("step")
    right.set_ylabel("scale, as a power of 2")
    if scaled:
        right.plot([], [], "x", color="black", label="step skipped")
        legend_over(right)
    else:
        right.text(0.5, 0.5, "no scaler was used", transform=right.transAxes, ha="center", color=palette.GREY)
        right.set_xticks([])
        right.set_yticks([])


def precision_speed(*records: Record) -> Picture:
    """Time of a step beside fp32's, timed in turn: each dot is a repeat, the bar their median, the number their ratio."""
    need(records)
    figure = Figure(figsize=(10.5, 1.5 + 0.62 * len(records)))
    axis = figure.subplots()
    words, longest, names = [], 0.0, names_of(records)
    for row, (record, name) in enumerate(zip(records, names, strict=True)):
        times = speed(record.run)
        if times is None:
            raise UsageError(f"{name} timed no steps beside fp32's; run it through the lab precision, with repeats=9")
        low, high = times.interval
        told = palette.VERMILION if low > 1 else palette.BLUE if high < 1 else palette.GREY
        for y, values, colour, hatch in (
            (row - 0.17, times.own_s * 1e3, told, ""),
            (row + 0.17, times.fp32_s * 1e3, palette.LIGHT, "///"),
        ):
            axis.barh(y, np.median(values), 0.32, color=colour, hatch=hatch, edgecolor="white")
            axis.plot(values, np.full(len(values), y), "o", color="black", markersize=2.5)
            longest = max(longest, float(np.sort(values)[-2:][0]))
        words.append(f"{name}: {np.median(times.ratios):.2f} times fp32's time ({low:.2f} to {high:.2f} in the repeats)")
    axis.set_xlim(0, longest * 1.02)
    for row, record in enumerate(records):
        _write_ratio(axis, row, record)
    axis.set_yticks(range(len(records)), names)
    axis.set_ylim(len(records) - 0.5, -0.5)
    axis.set_xlabel("ms a step; a dot is a repeat")
    handles = [
        Patch(facecolor=palette.VERMILION, label="slower than fp32"),
        Patch(facecolor=palette.BLUE, label="faster"),
        Patch(facecolor=palette.GREY, label="noise hides which"),
        Patch(facecolor=palette.LIGHT, hatch="///", edgecolor="white", label="fp32, timed in turn with it"),
    ]
    figure.legend(handles=handles, loc="upper center", ncols=4, frameon=False, fontsize=9, bbox_to_anchor=(0.5, 1.0))
    plain_axes(axis)
    return finish(figure, records, "Time of a step. " + "; ".join(words) + ".", top=1 - 0.28 / figure.get_figheight())


def _write_ratio(axis, row: int, record: Record) -> None:
    """The ratio of a row, right of the axes: it meets no dot there, however large the letters are."""
    times = speed(record.run)
    assert times is not None  # drawn before
    label = f"{np.median(times.ratios):.2f}×  ({times.interval[0]:.2f} to {times.interval[1]:.2f})"
    axis.text(1.01, row - 0.17, label, transform=axis.get_yaxis_transform(), va="center", fontsize=9)


FIGURES = {
    "loss-beside-fp32": loss_beside_fp32,
    "gradient-range": gradient_range,
    "zeros-and-scale": zeros_and_scale,
    "precision-speed": precision_speed,
}
