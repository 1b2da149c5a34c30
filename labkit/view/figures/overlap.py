"""The figures of overlap: compute over communication in time, what of a step is exposed, and the sweep of bucket sizes."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ...detect.overlap.measures import Exposure, exposure, is_alone, longest_s, measured_steps, training_steps
from ...detect.overlap.summary import Tried, model_of, parts_alone, sweep_of
from ...detect.runs import names_of
from ...errors import UsageError
from ...record.schema import Record, Span, Step
from ...theory.overlap_model import Gradients, Link, predict
from .. import palette
from ..picture import Picture
from .common import finish, need, plain_axes

COLOURS = {
    "forward": palette.SKY,
    "backward": palette.BLUE,
    "optimizer": palette.GREEN,
    "wait": "white",
    "all_reduce": palette.VERMILION,
}
HATCHES = {"wait": "....", "all_reduce": "///", "optimizer": "xx"}
LABELS = {"wait": "waits for the link", "all_reduce": "all-reduce under way"}
LANES = 3
"""All-reduces under way at one time that are drawn one above the other; more share the last line."""


def compute_over_comm(*records: Record, step: int | str | None = None, numbers: bool = True) -> Picture:
    """One step on each rank: computing above, collectives below, in milliseconds.

    Args:
        step: the number of the step; None takes the middle one by duration; "all" draws the whole run.
        numbers: whether collectives bear theirs.
    """
    need(records)
    tallest = max(record.run.world_size for record in records)
    figure = Figure(figsize=(12.4, 0.95 + (0.5 + 0.62 * tallest) * len(records) + 0.1 * len(records)))
    axes = figure.subplots(len(records), 1, squeeze=False)[:, 0]
    words, longest = [], 0.0
    for axis, record, name in zip(axes, records, names_of(records), strict=True):
        steps, said = _chosen(record, step, name)
        whole = step == "all"
        longest = max(longest, _draw_steps(axis, record, steps, whole=whole, numbers=numbers and not whole))
        seen = _words_of(exposure(record.run, [s for s in steps if not is_alone(s[0])]))
        axis.set_title(f"{name}, {said}", loc="left", fontsize=11, fontweight="bold")
        axis.set_title(seen, loc="right", fontsize=9)
        words.append(f"{name}, {said}: {seen}")
        plain_axes(axis)
    for axis in axes:
        axis.set_xlim(0, longest * 1.01)
    axes[-1].set_xlabel("ms")
    figure.legend(
        handles=_handles(COLOURS), loc="upper center", ncols=5, frameon=False, fontsize=9, bbox_to_anchor=(0.5, 1.0)
    )
    top = 1 - 0.3 / figure.get_figheight()
    return finish(figure, records, "Compute over communication on each rank. " + "; ".join(words) + ".", top=top)


def compute_over_comm_run(*records: Record) -> Picture:
    """The whole run on each rank; steps that compute alone, to compare with, are pale."""
    return compute_over_comm(*records, step="all")


def _handles(names) -> list[Patch]:
    return [
        Patch(
            facecolor=COLOURS[name],
            hatch=HATCHES.get(name, ""),
            edgecolor=palette.GREY if name == "wait" else "white",
            label=LABELS.get(name, name),
        )
        for name in names
    ]


def _chosen(record: Record, step: int | str | None, name: str) -> tuple[list[tuple[Step, ...]], str]:
    """The steps to draw, and how to call them."""
    everything = list(zip(*(log.steps for log in record.run.ranks), strict=False))
    if not everything:
        raise UsageError(f"{name} has no steps to draw; read batches through probe.batches(loader)")
    if step == "all":
        pale = "; pale: the same computing with nothing sent" if any(is_alone(of[0]) for of in everything) else ""
        return everything, f"{len(training_steps(record.run))} steps{pale}"
    if step is None:
        steps = measured_steps(record.run) or everything
        of_ranks = sorted(steps, key=longest_s)[(len(steps) - 1) // 2]
        return [of_ranks], f"step {of_ranks[0].step}, the middle one"
    found = [of_ranks for of_ranks in everything if of_ranks[0].step == step]
    if not found:
        last = everything[-1][0].step
        raise UsageError(f"{name} has no step {step!r}; give a number from 0 to {last}, None for the middle one, or 'all'")
    return found, f"step {step}"


def _draw_steps(axis, record: Record, steps: list[tuple[Step, ...]], *, whole: bool, numbers: bool) -> float:
    """Draw every rank's spans; returns the width in ms."""
    origin = min(step.start_ns for of_ranks in steps for step in of_ranks)
    width = 0.0
    for of_ranks in steps:
        for rank, step in enumerate(of_ranks):
            begin, end = ((time - origin) / 1e6 for time in (step.start_ns, step.end_ns))
            width = max(width, end)
            for edge in (begin, end):
                axis.plot([edge, edge], [rank + 0.04, rank + 0.96], color=palette.LIGHT, linewidth=0.8, zorder=0)
            _draw_spans(axis, rank, step, origin, whole, numbers)
    axis.set_ylim(record.run.world_size, 0)
    axis.set_yticks(
        np.arange(record.run.world_size) + 0.5, [f"rank {rank}" for rank in range(record.run.world_size)], fontsize=9
    )
    return width


def _draw_spans(axis, rank: int, step: Step, origin: int, whole: bool, numbers: bool) -> None:
    pale = 0.25 if is_alone(step) else 1.0
    comm = sorted((span for span in step.spans if span.lane == "comm"), key=lambda span: span.start_ns)
    for span in step.spans:
        if span.lane != "comm":
            _bar(axis, span, origin, rank + 0.08, 0.38, pale)
    ends: list[int] = []
    for number, span in enumerate(comm):
        lane = next((at for at, end in enumerate(ends) if end <= span.start_ns), len(ends))
        ends[lane : lane + 1] = [span.end_ns]
        lanes = LANES if not whole else 1
        height = 0.42 / lanes
        _bar(axis, span, origin, rank + 0.5 + min(lane, lanes - 1) * height, height * 0.9, pale)
        if numbers and len(comm) <= 40:
            x = (span.start_ns + span.end_ns) / 2 / 1e6 - origin / 1e6
            axis.text(x, rank + 0.5 + min(lane, lanes - 1) * height + height * 0.45, f"{number}", fontsize=6.5, va="center",
                      ha="center", color="black", clip_on=True,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.3, "alpha": 0.85})  # fmt: skip


def _bar(axis, span: Span, origin: int, bottom: float, height: float, alpha: float) -> None:
    axis.broken_barh(
        [((span.start_ns - origin) / 1e6, (span.end_ns - span.start_ns) / 1e6)],
        (bottom, height),
        facecolor=COLOURS.get(span.name, palette.PURPLE if span.lane != "comm" else palette.VERMILION),
        hatch=HATCHES.get(span.name, ""),
        edgecolor=palette.GREY if span.name == "wait" else "white",
        linewidth=0.4,
        alpha=alpha,
    )


def _words_of(seen: Exposure | None) -> str:
    if seen is None:
        return "no collective was timed"
    step, comm, exposed = (float(np.median(values)) * 1e3 for values in (seen.step_s, seen.comm_s, seen.exposed_s))
    middle = "a step, the median: " if len(seen.step_s) > 1 else ""
    return f"{middle}{step:.0f} ms, collectives under way {comm:.0f} ms, of these {exposed:.0f} ms exposed"


def exposure_bars(*records: Record) -> Picture:
    """For each record a step: computing, then what of communication is exposed; below it the link, hidden and exposed."""
    need(records)
    figure = Figure(figsize=(11.5, 1.3 + 0.78 * len(records)))
    axis = figure.subplots()
    words, names = [], names_of(records)
    shown = [(name, record, exposure(record.run)) for name, record in zip(names, records, strict=True)]
    longest = max((float(np.median(seen.step_s)) for _, _, seen in shown if seen is not None), default=0.0) * 1e3
    if not longest:
        raise UsageError(
            f"{', '.join(names)}: no collective was timed, so nothing is exposed or hidden; watch the DDP module with "
            "watch_ddp(ddp, probe)"
        )
    for row, (name, record, seen) in enumerate(shown):
        if seen is None:
            axis.text(0, row, "  no collective was timed", va="center", fontsize=9)
            continue
        said = f"{_words_of(seen)}{_alone_words(record)}"
        _draw_exposure(axis, row, seen, longest, said)
        words.append(f"{name}: {said}")
    axis.set_yticks(range(len(records)), names)
    axis.set_ylim(len(records) - 0.4, -0.6)
    axis.set_xlim(0, longest * 1.42)
    axis.set_xlabel("ms of a step, medians")
    handles = [
        Patch(facecolor=palette.BLUE, label="computes"),
        Patch(facecolor=palette.VERMILION, hatch="///", edgecolor="white", label="communication alone: exposed"),
        Patch(facecolor=palette.LIGHT, label="other"),
        Patch(facecolor=palette.GREEN, hatch="..", edgecolor="white", label="communication behind computing: hidden"),
    ]
    figure.legend(handles=handles, loc="upper center", ncols=4, frameon=False, fontsize=9, bbox_to_anchor=(0.5, 1.0))
    plain_axes(axis)
    return finish(
        figure, records, "A step, and what of it is exposed. " + "; ".join(words) + ".", top=1 - 0.3 / figure.get_figheight()
    )


def _draw_exposure(axis, row: int, seen: Exposure, longest: float, said: str) -> None:
    step, compute, comm, exposed = (
        float(np.median(v)) * 1e3 for v in (seen.step_s, seen.compute_s, seen.comm_s, seen.exposed_s)
    )
    upper, lower = (row - 0.3, 0.34), (row + 0.08, 0.16)
    compute = min(compute, step - exposed)
    axis.broken_barh([(0, compute)], upper, facecolor=palette.BLUE, edgecolor="white")
    axis.broken_barh([(compute, exposed)], upper, facecolor=palette.VERMILION, hatch="///", edgecolor="white")
    axis.broken_barh([(compute + exposed, max(0.0, step - compute - exposed))], upper, facecolor=palette.LIGHT)
    hidden = max(0.0, comm - exposed)
    axis.broken_barh([(max(0.0, compute - hidden), hidden)], lower, facecolor=palette.GREEN, hatch="..", edgecolor="white")
    axis.broken_barh([(compute, exposed)], lower, facecolor=palette.VERMILION, hatch="///", edgecolor="white")
    axis.text(step, row, " " + said.replace(", of these", ",\n of these"), va="center", fontsize=8.5)


def _alone_words(record: Record) -> str:
    alone = parts_alone(record)
    return f", {np.median(alone.compute_s) * 1e3:.0f} ms where nothing is sent" if len(alone.compute_s) else ""


def bucket_sweep(*records: Record) -> Picture:
    """The time of a step against the number of buckets: measured, and as a model of buckets that queue has it."""
    need(records)
    figure = Figure(figsize=(11.0, 4.4))
    axis = figure.subplots()
    words = []
    for index, (record, name) in enumerate(zip(records, names_of(records), strict=True)):
        tried = sweep_of(record)
        if not tried:
            raise UsageError(f"{name} is of one bucket size; run the variant bucket-sweep of the lab overlap to draw this")
        label = name if len(records) == 1 else f"{name} {record.network.label() if record.network else ''}"
        words.append(_draw_sweep(axis, record, tried, palette.VARIANT_COLOUR[(index + 1) % 6], label))
    axis.set_xscale("log", base=2)
    ticks = sorted({one.buckets for record in records for one in sweep_of(record)})
    axis.set_xticks(ticks, [_tick(count, records[0]) for count in ticks], fontsize=8.5)
    axis.set_xticks([], minor=True)
    axis.set_xlabel("collectives a reduction (and the bucket size that makes them)")
    axis.set_ylabel("ms of a step")
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False, fontsize=9)
    plain_axes(axis)
    return finish(figure, records, "Step time by bucket size. " + "; ".join(words) + ".", top=0.98)


def _tick(count: int, record: Record) -> str:
    of = {one.buckets: one.cap_mib for one in sweep_of(record)}
    cap = of.get(count)
    size = "" if cap is None else "one a parameter" if cap == 0 else "all in one" if count == 1 else f"{cap:.3g} MiB"
    return f"{count}\n{size}"


def _draw_sweep(axis, record: Record, tried: list[Tried], colour: str, name: str) -> str:
    counts = [one.buckets for one in tried]
    medians = np.array([one.median_s for one in tried]) * 1e3
    low, high = (np.array([f(one.step_s) for one in tried]) * 1e3 for f in (np.min, np.max))
    axis.errorbar(counts, medians, yerr=[medians - low, high - medians], fmt="o", color=colour, capsize=3,
                  label=f"{name}: measured, median and range of {len(tried[0].step_s)}", zorder=3)  # fmt: skip
    best = min(tried, key=lambda one: one.median_s)
    axis.plot([best.buckets], [best.median_s * 1e3], marker="*", markersize=16, color=colour, zorder=4)
    parts = model_of(record)
    if parts is not None:
        gradients, link = parts
        curve = _model_curve(gradients, link)
        source = "simulated on an emulated link" if record.link_source else "simulated"
        axis.plot(*curve, color=colour, linestyle="--", linewidth=1.6,
                  label=f"{source}: buckets that queue; link by its own all-reduces: {_link_words(link)}")  # fmt: skip
        axis.axhline(gradients.compute_s * 1e3, color=palette.GREY, linewidth=1, linestyle=":")
        axis.annotate("computing alone", (counts[0], gradients.compute_s * 1e3), (0, -3), textcoords="offset points",
                      fontsize=8.5, va="top", color=palette.GREY)  # fmt: skip
    return f"{name}: best {best.buckets} collectives, {best.median_s * 1e3:.0f} ms, one {medians[0]:.0f} ms"


def _model_curve(gradients: Gradients, link: Link) -> tuple[list[int], list[float]]:
    """Step time in ms by number of buckets: of the caps that make a number, the best."""
    caps = np.geomspace(1, gradients.total_bytes * 1.01, 240)
    best: dict[int, float] = {}
    for cap in caps:
        found = predict(gradients, link, float(cap))
        best[found.buckets] = min(best.get(found.buckets, np.inf), found.step_s * 1e3)
    order = sorted(best)
    return order, [best[count] for count in order]


def _link_words(link: Link) -> str:
    rate = f"{link.bytes_per_s * 8 / 1e6:.0f} Mbit/s" if link.bytes_per_s else "no limit seen"
    return f"{link.alpha_s * 1e3:.2f} ms, {rate}"


FIGURES = {
    "compute-over-comm": compute_over_comm,
    "compute-over-comm-run": compute_over_comm_run,
    "exposure": exposure_bars,
    "bucket-sweep": bucket_sweep,
}
