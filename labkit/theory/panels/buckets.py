"""Lab 05: how large buckets should be, on this link."""

from __future__ import annotations

import functools

import numpy as np

from ..overlap_model import MIB, Gradients, Link, Predicted, evenly, predict
from ..panel import Axis, Chart, Curve, Drawn, Panel, Point, Slider, Span, decades, powers_of_two
from ..scale import bytes_said, share_said, time_said

CAPS = decades(0.1, 1000)
MOST_TENSORS = 200


def draw(
    gradients_mb: float, tensors: int, backward_ms: float, ranks: int, alpha_us: float, gb_per_s: float, cap_mib: float,
    *, profile: Gradients | None = None,
) -> Drawn:  # fmt: skip
    """The step's time by bucket size, and the queue of buckets at this one.

    Args:
        profile: of a real model: sizes and times are its own, stretched to the sliders; even tensors if None.
    """
    gradients = _gradients(gradients_mb, tensors, backward_ms, profile)
    link = Link(ranks, alpha_us * 1e-6, gb_per_s * 1e9)
    at = predict(gradients, link, cap_mib * MIB)
    alone = link.seconds(gradients.total_bytes)
    said = (
        f"With buckets of {cap_mib:g} MiB, {bytes_said(gradients.total_bytes)} of gradients go in {at.buckets} all-reduces. "
        f"A step takes {time_said(at.step_s)}, of which {time_said(at.exposed_s)} ({share_said(at.exposed_s / at.step_s)}) "
        f"is communication that nothing hides. One bucket after the backward pass would add {time_said(alone)}."
    )
    numbers = {"step_s": at.step_s, "exposed_s": at.exposed_s, "buckets": float(at.buckets), "alone_s": alone}
    return Drawn(charts=(_by_cap(gradients, link, cap_mib, at), _queue(gradients, at)), said=said, numbers=numbers)


def _gradients(gradients_mb: float, tensors: int, backward_ms: float, profile: Gradients | None) -> Gradients:
    total, backward_s = int(gradients_mb * 1e6), backward_ms / 1e3
    if profile is None:
        count = min(tensors, MOST_TENSORS)
        return evenly([total // count] * count, forward_s=backward_s / 2, backward_s=backward_s)
    longer = backward_s / profile.backward_s
    sizes = np.maximum(1, np.round(profile.num_bytes * (total / profile.total_bytes))).astype(np.int64)
    return Gradients(sizes, profile.ready_s * longer, backward_s, profile.other_s * longer)


def _by_cap(gradients: Gradients, link: Link, cap_mib: float, at: Predicted) -> Chart:
    x = tuple(sorted({*CAPS, cap_mib}))
    steps = tuple(predict(gradients, link, cap * MIB).step_s * 1e3 for cap in x)
    return Chart(
        title="A step, by bucket size",
        x=Axis(label="bucket", unit="MiB", log=True, low=x[0], high=x[-1]),
        y=Axis(label="step", unit="ms", low=0),
        curves=(
            Curve(label="step", x=x, y=steps),
            Curve(label="its computing alone", x=(x[0], x[-1]), y=(gradients.compute_s * 1e3,) * 2, minor=True),
        ),
        points=(Point(label="your bucket", x=cap_mib, y=at.step_s * 1e3),),
    )


def _queue(gradients: Gradients, at: Predicted) -> Chart:
    filling, spans = 0.0, [Span(lane=0, begin=0.0, end=gradients.backward_s * 1e3, kind="backward pass")]
    for number, (ready, begin, end) in enumerate(at.spans, start=1):
        spans.append(Span(lane=1, begin=filling * 1e3, end=ready * 1e3, kind="a bucket fills", text=str(number)))
        spans.append(Span(lane=2, begin=begin * 1e3, end=end * 1e3, kind="its all-reduce", text=str(number)))
        filling = ready
    return Chart(
        title="Buckets fill and travel",
        x=Axis(label="from the start of the backward pass", unit="ms", low=0),
        y=Axis(label="", names=("computing", "buckets", "link")),
        spans=tuple(spans),
    )


def of_model(profile: Gradients) -> Panel:
    """The panel with a real model's gradients: their sizes, and when each is ready."""
    return Panel(
        title=PANEL.title,
        sliders=tuple(slider for slider in PANEL.sliders if slider.name != "tensors"),
        draw=functools.partial(draw, tensors=len(profile.num_bytes), profile=profile),
        source=f"{QUEUE}; sizes and times of the gradients are your run's",
    )


QUEUE = "buckets queue for the link, each 2(W−1)·α + 2(W−1)/W · bytes/β"

PANEL = Panel(
    title="How large should a bucket be on this link?",
    sliders=(
        Slider(name="gradients_mb", label="gradients", unit="MB", stops=decades(1, 50000), value=500.0),
        Slider(name="tensors", label="parameters of equal size", unit="",
               stops=(1, 2, 4, 8, 16, 32, 48, 64, 100, 150, 200), value=100),
        Slider(name="backward_ms", label="backward pass", unit="ms", stops=decades(1, 10000), value=200.0),
        Slider(name="ranks", label="ranks (W)", unit="", stops=powers_of_two(2, 1024), value=8),
        Slider(name="alpha_us", label="latency of a step (α)", unit="µs", stops=decades(1, 1e4), value=50.0),
        Slider(name="gb_per_s", label="bandwidth (β)", unit="GB/s", stops=decades(0.01, 500), value=5.0),
        Slider(name="cap_mib", label="bucket", unit="MiB", stops=CAPS, value=20.0),
    ),
    draw=draw,
    source=f"{QUEUE}; a forward pass takes half a backward pass",
)  # fmt: skip
