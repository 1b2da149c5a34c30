"""The figures of utilisation: the ladder, what counts as a FLOP, and where others stand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from ...detect.catalogue import reason
from ...detect.runs import names_of
from ...detect.utilisation.measures import (
    busy_share,
    flops_by_convention,
    tokens_per_second,
    utilisation,
    utilisation_spread,
)
from ...errors import UsageError
from ...facts.published import share_below, training
from ...record.schema import Record
from ...theory.flops import FULL_ATTENTION
from .. import palette
from ..picture import Picture
from .common import finish, need, plain_axes

BANDS = ((0.0, 0.20, "something is wrong"), (0.20, 0.30, "poor"), (0.30, 0.45, "passes"), (0.45, 0.60, "tuned"))


def ladder(*records: Record) -> Picture:
    """Left: MFU of each record, whiskers for the middle half of its steps, and how busy its cores were. Right: tokens/s."""
    need(records)
    names = _rungs(records)
    figure = Figure(figsize=(10.5, 1.7 + 0.5 * len(records)))
    left, right = figure.subplots(1, 2, sharey=True)
    places = np.arange(len(records))
    useful = np.array([_mfu(record) for record in records])
    busy = np.array([busy_share(record.run) or 0.0 for record in records])
    spreads = [utilisation_spread(record) or (value, value) for record, value in zip(records, useful, strict=True)]
    errors = np.array([[max(0.0, u - low), max(0.0, high - u)] for u, (low, high) in zip(useful, spreads, strict=True)]).T
    bars = left.barh(
        places - 0.18,
        useful,
        0.36,
        color=palette.BLUE,
        xerr=errors,
        label="MFU: useful arithmetic, of the best rate seen here",
    )
    left.barh(
        places + 0.18, busy, 0.3, color=palette.LIGHT, hatch="///", edgecolor="white", label="busy: of the cores' time"
    )
    left.bar_label(bars, [f"{value:.1%}" for value in useful], fontsize=8.5, padding=4)
    left.set_yticks(places, names)
    left.invert_yaxis()
    left.xaxis.set_major_formatter(PercentFormatter(1.0))
    left.set_xlim(0, max(1.05, float(busy.max()) * 1.05))
    left.set_xlabel("MFU, of the ceiling measured here; busy, of the time of the cores")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=2, frameon=False, fontsize=8.5, bbox_to_anchor=(0.35, 1.0))
    tokens = [tokens_per_second(record.run) or 0.0 for record in records]
    bars = right.barh(places, tokens, 0.5, color=palette.SKY)
    right.bar_label(bars, [f"{value:,.0f}" if value else "trains nothing" for value in tokens], fontsize=8.5, padding=4)
    right.set_xlim(0, max(max(tokens), 1.0) * 1.2)
    right.set_xlabel("tokens a second")
    plain_axes(left, right)
    words = "; ".join(f"{name}: MFU {value:.1%}, busy {b:.0%}" for name, value, b in zip(names, useful, busy, strict=True))
    return finish(figure, records, f"The ladder. {words}.", top=1 - 0.3 / figure.get_figheight())


def _rungs(records: Sequence[Record]) -> list[str]:
    """Names: of records of one variant, what differs between them, since "broken" says nothing of a rung."""
    names = names_of(records)
    if len(records) > 1 and len({record.variant for record in records}) == 1 and all("(" in name for name in names):
        return [name.removeprefix(f"{records[0].variant} (").removesuffix(")") for name in names]
    return names


def _mfu(record: Record) -> float:
    value = utilisation(record)
    if value is None:
        raise UsageError(
            f"{record.variant} has no measured ceiling to compare with; run it through the lab mfu, or labkit bench first"
        )
    return value


def flops(*records: Record) -> Picture:
    """FLOPs of one token by each convention, and the MFU that each makes of the same run."""
    need(records)
    figure = Figure(figsize=(10.5, 1.7 + 1.5 * len(records)))
    axes = figure.subplots(len(records), 1, squeeze=False)[:, 0]
    labels = {
        "6n": "6N: weights only",
        "causal": "6N + 6·L·h·s: causal half of attention",
        "attention": "6N + 12·L·h·s: full attention",
        "counted": "torch's counter on the real step",
        "executed": "the same with what is recomputed (HFU)",
    }
    words = []
    for axis, record, name in zip(axes, records, names_of(records), strict=True):
        if not record.run.fact("matmul_params"):
            raise UsageError(f"{name} does not say what its arithmetic is: {reason('no-flops-declared').fix}")
        values = flops_by_convention(record.run)
        bars = axis.barh(list(labels.values()), [values[key] / 1e6 for key in labels], color=palette.BLUE, height=0.6)
        shares = {key: utilisation(record, convention=key) if values[key] > 0 else None for key in labels}
        axis.bar_label(
            bars, [f"{_of(key)} {share:.1%}" if share else "" for key, share in shares.items()], fontsize=8.5, padding=4
        )
        axis.invert_yaxis()
        axis.set_title(name, loc="left", fontsize=10, fontweight="bold")
        axis.margins(x=0.18)
        words.append(f"{name}: " + ", ".join(f"{key} {values[key] / 1e6:.3g} MFLOP" for key in labels))
    axes[-1].set_xlabel("MFLOP a token")
    plain_axes(*axes)
    return finish(figure, records, "FLOPs of a token by convention. " + "; ".join(words) + ".", top=0.98)


def _of(convention: str) -> str:
    """What a share is called where this is counted: what is computed again is no model's arithmetic."""
    return "HFU" if convention == "executed" else "MFU"


def published(*records: Record) -> Picture:
    """MFU that others published (quoted), by device, and the records' own against the ceiling measured here."""
    need(records)
    points = [(row.device, value) for row in training() if (value := row.mfu_by(FULL_ATTENTION)) is not None]
    devices = sorted({device for device, _ in points}, key=lambda name: -sum(device == name for device, _ in points))
    figure = Figure(figsize=(10.5, 4.4))
    axis = figure.subplots()
    for low, high, word in BANDS:
        axis.axhspan(low, high, color=palette.LIGHT, alpha=0.25 if word in ("poor", "tuned") else 0.55, linewidth=0)
        axis.text(len(devices) + len(records) - 0.45, (low + high) / 2, word, fontsize=8, va="center")
    below = share_below(training(), 0.30)
    theirs = f"{len(points)} points on {len(devices)} devices, {below:.0%} of them under 30 %"
    scatter = np.random.default_rng(0)
    for place, name in enumerate(devices):
        values = [value for device, value in points if device == name]
        axis.scatter(place + scatter.uniform(-0.25, 0.25, len(values)), values, s=9, alpha=0.55, color=palette.GREY,
                     label=f"published (quoted): {theirs}" if place == 0 else None)  # fmt: skip
    here = "this machine, of its measured ceiling"
    for place, record in enumerate(records, start=len(devices)):
        axis.scatter([place], [_mfu(record)], s=70, marker="D", color=palette.VERMILION, zorder=3,
                     label=here if place == len(devices) else None)  # fmt: skip
        value = _mfu(record)
        axis.annotate(f"{value:.1%}", (place, value), textcoords="offset points", xytext=(8, 4), fontsize=8.5)
    labels = [*devices, *names_of(records)]
    axis.set_xticks(range(len(labels)), labels, rotation=20, ha="right", fontsize=8)
    axis.set_xlim(-0.6, len(devices) + len(records) + 0.9)
    axis.set_ylim(0, 1)
    axis.yaxis.set_major_formatter(PercentFormatter(1.0))
    axis.set_ylabel("MFU, full attention counted")
    axis.legend(frameon=False, fontsize=8.5, loc="upper left")
    plain_axes(axis)
    alt = f"Published (quoted): {theirs}; "
    alt += "; ".join(f"{name}: {_mfu(record):.1%}" for record, name in zip(records, names_of(records), strict=True))
    return finish(figure, records, alt + ".", top=0.98)


FIGURES = {
    "ladder": ladder,
    "flops": flops,
    "published": published,
}
