"""A trace of torch.profiler as a picture: one bar for each operation, from left to right, with what it is for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import UsageError
from ..theory.panel import Axis, Chart, Span
from .charts import to_sketch
from .drawings import Drawing
from .sketch import Sketch

PRODUCTS = ("matmul", "mm", "bmm", "addmm", "baddbmm", "linear", "einsum", "scaled_dot_product_attention")
"""Operations that multiply matrices; all others move, or change, what is in memory."""


def trace(profiles: Mapping[str, Any]) -> Drawing:
    """The operations of one or more profiles on one time axis, each profile from its own start, as measured.

    Args:
        profiles: by what to call it: a `torch.profiler.profile` that has ended. What an operation calls is part of it.

    Raises:
        UsageError: no profile, or one that saw no operation.
    """
    spans = [span for lane, (name, seen) in enumerate(profiles.items()) for span in _spans(lane, name, seen)]
    if not spans:
        raise UsageError("there is no profile to draw; give profiles by name, as in trace({'mine': profile})")
    last = max(span.end for span in spans)
    chart = Chart(
        title="Operations, as torch.profiler saw them (measured)",
        x=Axis(label="from the first operation", unit="ms", low=0, high=last * 1.03),
        y=Axis(label="", names=tuple(profiles)),
        spans=tuple(spans),
    )
    drawn = to_sketch(chart)
    said = "; ".join(_said(name, [span for span in spans if span.lane == lane]) for lane, name in enumerate(profiles))
    return Drawing(Sketch(drawn.width, drawn.height, drawn.shapes, f"Operations on a time axis, measured. {said}."))


def _spans(lane: int, name: str, seen: Any) -> list[Span]:
    events = [event for event in seen.events() if event.cpu_parent is None and event.name.startswith("aten::")]
    if not events:
        raise UsageError(f"the profile {name!r} saw no operation of torch; run them inside `with profile() as seen:`")
    begin = min(event.time_range.start for event in events)
    return [
        Span(
            lane=lane,
            begin=(event.time_range.start - begin) / 1e3,
            end=(event.time_range.end - begin) / 1e3,
            kind="multiplies matrices" if _plain(event.name) in PRODUCTS else "reads and writes memory",
            text=_plain(event.name),
        )
        for event in sorted(events, key=lambda event: event.time_range.start)
    ]


def _said(name: str, spans: list[Span]) -> str:
    each = ", ".join(f"{span.text} {span.end - span.begin:.3g} ms" for span in spans if span.end > span.begin)
    return f"{name}, to {max(span.end for span in spans):.3g} ms: {each}"


def _plain(name: str) -> str:
    return name.removeprefix("aten::").strip("_")
