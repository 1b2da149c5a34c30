"""The figures of an input pipeline: the saw-tooth, data beside compute, what more ranks bring, what a store gives."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from ...detect.input.measures import (
    amdahl,
    computing,
    free_running,
    mean_waits,
    samples_per_s,
    share_alone,
    store_rates,
)
from ...detect.runs import names_of
from ...errors import UsageError
from ...record.roles import Role
from ...record.schema import Record, Step
from .. import palette
from ..picture import Picture
from .common import finish, need, plain_axes, side_by_side

SECONDS = 3.0
"""How much of a run is drawn."""

MARKS = ("o", "s", "^", "D", "v", "P")


def saw_tooth_by_rank(*records: Record) -> Picture:
    """By rank: when it computes, and below it, when it waits for data, to the millisecond.

    Of a longer run, the end of its first epoch and what follows it: caches are filled then, and workers start again.
    """
    need(records)
    tallest = max(record.run.world_size for record in records)
    figure, axes = side_by_side(records, width=6.2, height=1.7 + 0.85 * tallest)
    words = []
    for axis, record, name in zip(axes, records, names_of(records), strict=True):
        run = record.run
        if not any(log.steps for log in run.ranks):
            raise UsageError(f"{name} has no steps to draw; read batches through probe.batches(loader)")
        origin = min(log.steps[0].start_ns for log in run.ranks if log.steps)
        ends = [log.steps[-1].end_ns - origin for log in run.ranks if log.steps]
        whole = max(ends) / 1e9
        begins = [(step.start_ns - origin) / 1e9 for step in _epoch_starts(record)]
        first = max(0.0, min(begins[0] - SECONDS / 2, whole - SECONDS)) if begins else 0.0
        for begin in begins:
            axis.axvline(begin, color=palette.GREY, linewidth=1, linestyle=":")
        for rank, log in enumerate(run.ranks):
            fetched = [(s.start_ns, s.end_ns) for step in log.steps for s in step.spans if s.name == "fetch"]
            for intervals, bottom, colour in ((computing(log), 0.1, palette.BLUE), (fetched, 0.5, palette.ORANGE)):
                bars = [((start - origin) / 1e9, (end - start) / 1e9) for start, end in intervals]
                axis.broken_barh(bars, (rank + bottom, 0.36), facecolor=colour, edgecolor="none")
        axis.set_xlim(first, min(first + SECONDS, whole))
        axis.set_ylim(run.world_size, 0)
        axis.set_yticks(np.arange(run.world_size) + 0.43, [f"rank {rank}" for rank in range(run.world_size)])
        axis.tick_params(axis="y", length=0)
        waiting = mean_waits(run)
        mean = waiting.share if waiting is not None else None
        when = " after the first epoch" if begins else ""
        said = "" if mean is None else f" · {mean:.0%} of a step waits for data{when}"
        short = "" if mean is None else f" · waits {mean:.0%} of a step{when}"
        axis.set_title(name + short, loc="left", fontsize=10.5, fontweight="bold")
        axis.set_xlabel("seconds since the first step", fontsize=9)
        words.append(f"{name}{said}")
    figure.legend(handles=_handles(), loc="upper center", ncols=3, frameon=False, fontsize=9, bbox_to_anchor=(0.5, 1.0))
    return finish(figure, records, "The saw-tooth. " + "; ".join(words) + ".", top=0.91)


def _epoch_starts(record: Record) -> list[Step]:
    """The first steps of all epochs but the first, on rank 0."""
    firsts: dict[int, Step] = {}
    for step in record.run.ranks[0].steps:
        firsts.setdefault(step.epoch, step)
    return list(firsts.values())[1:]


def _handles() -> list[Any]:
    return [
        Patch(color=palette.BLUE, label="computes"),
        Patch(color=palette.ORANGE, label="waits for its batch"),
        Line2D([], [], color=palette.GREY, linewidth=1, linestyle=":", label="an epoch begins"),
    ]


def data_beside_compute(*records: Record) -> Picture:
    """Left: what a step waits for data beside what it computes. Right: samples a second, and on one ready batch."""
    need(records)
    names = names_of(records)
    found = [mean_waits(record.run) for record in records]
    for name, known in zip(names, found, strict=True):
        if known is None:
            raise UsageError(
                f"{name} has too few steps, or none whose data were timed, to say what a step waits for; run more steps, "
                "and read batches through probe.batches(loader)"
            )
    figure = Figure(figsize=(10.5, 1.7 + 0.5 * len(records)))
    left, right = figure.subplots(1, 2, sharey=True)
    places = np.arange(len(records))
    known = [mean for mean in found if mean is not None]
    data, compute = 1e3 * np.array([(mean.seconds, mean.compute) for mean in known]).T
    shares = [mean.share for mean in known]
    left.barh(places - 0.18, data, 0.36, color=palette.ORANGE, label="data: the rank waits for its batch")
    left.barh(places + 0.18, compute, 0.36, color=palette.BLUE, hatch="///", edgecolor="white", label="compute")
    for place, value, share in zip(places, data, shares, strict=True):
        left.annotate(f"{value:.3g} ms, {share:.0%} of the step", (value, place - 0.18), xytext=(4, 0), fontsize=8.5,
                      textcoords="offset points", va="center")  # fmt: skip
    left.set_yticks(places, names)
    left.invert_yaxis()
    left.set_xlim(0, max(data.max(), compute.max()) * 1.55)
    left.set_xlabel("milliseconds of a step, mean over ranks")
    rates = np.array([samples_per_s(record.run) or 0.0 for record in records])
    dummies = np.array([_dummy_rate(record) for record in records])
    bars = right.barh(places - 0.18, rates, 0.36, color=palette.SKY, label="samples a second")
    right.bar_label(bars, [f"{rate:,.0f}" for rate in rates], fontsize=8.5, padding=4)
    ghosts = right.barh(
        places + 0.18, dummies, 0.3, color=palette.LIGHT, hatch="..", edgecolor="white", label="on one ready batch"
    )
    right.bar_label(ghosts, [f"{rate:,.0f}" if rate else "" for rate in dummies], fontsize=8.5, padding=4)
    right.set_xlim(0, max(rates.max(), dummies.max(), 1.0) * 1.2)
    right.set_xlabel("samples a second, all ranks together")
    for axis in (left, right):
        axis.legend(frameon=False, fontsize=8.5, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    plain_axes(left, right)
    words = "; ".join(
        f"{name}: {d:.3g} ms of data, {c:.3g} ms of compute, {r:,.0f} samples/s" + (f", {g:,.0f} without input" if g else "")
        for name, d, c, r, g in zip(names, data, compute, rates, dummies, strict=True)
    )
    return finish(figure, records, f"Data beside compute. {words}.", top=0.98)


def _dummy_rate(record: Record) -> float:
    return (samples_per_s(record.runs[Role.DUMMY]) or 0.0) if Role.DUMMY in record.runs else 0.0


def speed_up_by_ranks(*records: Record) -> Picture:
    """The work of W ranks as a multiple of one alone, against W; with what theory makes of the share measured alone."""
    need(records)
    figure = Figure(figsize=(8.4, 4.4))
    axis = figure.subplots()
    points = _points(records)
    most = max(record.run.world_size for record in records)
    ranks = np.arange(1, max(most, 4) + 1)
    axis.plot(ranks, ranks, color=palette.GREY, linewidth=1, linestyle=":", label="nothing shared: W")
    words, drawn = [], set()
    for index, ((variant, meet), found) in enumerate(points.items()):
        colour, mark = palette.VARIANT_COLOUR[index % 6], MARKS[index % 6]
        label = variant if meet else f"{variant}, running free"
        axis.plot(
            [w for w, _, _ in found], [s for _, s, _ in found], mark, color=colour, markersize=8, label=f"{label} (measured)"
        )
        words.append(f"{label}: " + ", ".join(f"{s:.2f} on {w}" for w, s, _ in found))
        share = float(np.mean([f for _, _, f in found]))
        if variant == "locked" and meet not in drawn:
            drawn.add(meet)
            curve = amdahl if meet else free_running
            said = "1/(f + (1-f)/W)" if meet else "min(W, 1/f)"
            axis.plot(ranks, [curve(share, int(w)) for w in ranks], color=colour, linewidth=1.4,
                      linestyle="-" if meet else "--", label=f"{said} with f = {share:.2f} (simulated)")  # fmt: skip
    axis.set_xlabel("ranks W")
    axis.set_ylabel("samples a second / those of one rank alone")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_ylim(0, max(ranks) * 1.05)
    axis.legend(frameon=False, fontsize=8.5, loc="upper left")
    plain_axes(axis)
    return finish(figure, records, "What more ranks bring. " + "; ".join(words) + ".", top=0.98)


def _points(records) -> dict[tuple[str, bool], list[tuple[int, float, float]]]:
    """By variant and whether its ranks meet: (ranks, speed-up, share f alone), in the order of ranks."""
    found: dict[tuple[str, bool], list[tuple[int, float, float]]] = {}
    for record in records:
        run = record.run
        if Role.ALONE not in record.runs:
            raise UsageError(
                f"{record.variant} on {run.ranks_said} holds no run of one rank alone to compare with; run the lab "
                "input-pipeline on 2 ranks or more, with compare='all'"
            )
        alone, own, share = samples_per_s(record.runs[Role.ALONE]), samples_per_s(run), share_alone(record)
        if alone is None or own is None or share is None:
            raise UsageError(f"{record.variant} on {run.ranks_said} has too few steps to say a rate; run more steps")
        key = (record.variant, bool(run.fact("meets", False)))
        found.setdefault(key, []).append((run.world_size, own / alone, share))
    return {key: sorted(values) for key, values in found.items()}


def store_rate(*records: Record) -> Picture:
    """What each rank gets from the store while it fetches, against the number of ranks; the curve is R/W."""
    need(records)
    figure = Figure(figsize=(8.4, 4.2))
    axis = figure.subplots()
    measured: dict[int, np.ndarray] = {}
    for record in records:
        rates = store_rates(record.run)
        if rates is None:
            inline = record.storage and not record.run.fact("workers", 0)
            remedy = (
                "run more steps"
                if inline
                else "draw the variant shared-store, or record what is read: probe.count('store_bytes', num_bytes)"
            )
            said = f"{record.variant} on {record.run.ranks_said} reads nothing from a store"
            raise UsageError(f"{said} in the steps that are judged; {remedy}")
        measured[record.run.world_size] = rates * 8 / 1e6
        alone = store_rates(record.runs[Role.ALONE]) if Role.ALONE in record.runs else None
        if alone is not None:
            measured.setdefault(1, alone * 8 / 1e6)
    most = max(*measured, 4)
    given = max((record.storage.rate_bits_per_s for record in records if record.storage), default=0.0) / 1e6
    ranks = np.linspace(1, most, 100)
    if given:
        axis.plot(ranks, given / ranks, color=palette.GREY, linewidth=1.4, linestyle="--",
                  label=f"R/W with R = {given:g} Mbit/s (simulated)")  # fmt: skip
    source = "simulated pace" if any(r.store_source for r in records) else "measured"
    first = True
    for count, rates in sorted(measured.items()):
        axis.plot([count] * len(rates), rates, "o", color=palette.VERMILION, markersize=7, alpha=0.7,
                  label=f"a rank, while it fetches ({source})" if first else None)  # fmt: skip
        axis.annotate(f"{rates.mean():.3g}", (count, rates.max()), xytext=(8, 5), textcoords="offset points", fontsize=9)
        first = False
    axis.set_xlabel("ranks W that read from one store")
    axis.set_ylabel("Mbit/s for each rank")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlim(0.6, most + 0.6)
    axis.set_ylim(0, max(given, max(rates.max() for rates in measured.values())) * 1.15)
    axis.legend(frameon=False, fontsize=9, loc="upper right")
    plain_axes(axis)
    words = ", ".join(f"{rates.mean():.3g} Mbit/s on {count}" for count, rates in sorted(measured.items()))
    return finish(figure, records, f"What a store gives each rank ({source}): {words}.", top=0.98)


FIGURES = {
    "saw-tooth": saw_tooth_by_rank,
    "data-beside-compute": data_beside_compute,
    "speed-up": speed_up_by_ranks,
    "store-rate": store_rate,
}
