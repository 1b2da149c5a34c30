"""What happens inside one step: the loss scale's way, and where the time goes."""

from __future__ import annotations

from ...theory.loss_scale import scales
from ..sketch import Box, Hatch, Line, Pen, Shape, Sketch, Words, text_width
from . import whole


def _node(shapes: list[Shape], x: float, y: float, lines: tuple[str, ...], fill: Pen = "panel", width: float = 132) -> None:
    height = 18 * len(lines) + 16
    shapes.append(Box(x=x, y=y - height / 2, width=width, height=height, fill=fill, edge="soft"))
    for place, line in enumerate(lines):
        at = y + 18 * (place - (len(lines) - 1) / 2)
        shapes.append(Words(x=x + width / 2, y=at, text=line, size=12, anchor="middle", bold=place == 0))


def loss_scale(growth_interval: int = 2000) -> Sketch:
    """One update with a gradient scaler, and what becomes of the scale."""
    whole("growth_interval", growth_interval, 1, 1_000_000)
    shapes: list[Shape] = []
    _node(shapes, 14, 60, ("loss × S", "S = 65,536"))
    _node(shapes, 186, 60, ("backward pass", "in fp16, × S"))
    _node(shapes, 358, 60, ("all gradients", "finite?"))
    _node(shapes, 560, 60, ("unscale", "gradients ÷ S, fp32"))
    _node(shapes, 732, 60, ("clip, then step", "weights change"))
    _node(shapes, 560, 172, ("skip the update", "S becomes S ÷ 2"))
    _node(shapes, 732, 172, (f"{growth_interval:,} good ones", "S becomes 2 · S"))
    for begin, end in ((146, 186), (318, 358), (490, 560), (692, 732)):
        shapes.append(Line(points=((begin, 60), (end - 1, 60)), width=1.8, arrow=True))
    shapes.append(Words(x=522, y=46, text="yes", size=12, anchor="middle"))
    shapes.append(Line(points=((424, 86), (424, 172), (559, 172)), width=1.8, arrow=True, dash="dash"))
    shapes.append(Words(x=456, y=158, text="no: inf or NaN", size=12))
    shapes.append(Line(points=((798, 86), (798, 145)), width=1.8, arrow=True))
    (before, _), (after, _) = scales([False, True])
    alt = (
        "One update with a gradient scaler. The loss is multiplied by S: the fp16 gradients are S times as large. If all "
        f"are finite, they are divided by S, clipped, and the optimizer steps; after {growth_interval:,} good updates "
        f"in a row S doubles. If one is infinite or no number, the update is skipped and S halves, from {before:,.0f} to "
        f"{after:,.0f}."
    )
    return Sketch(878, 214, tuple(shapes), alt)


STEP: tuple[tuple[str, Pen, Hatch, str], ...] = (
    ("waits for data", "yellow", "back", "lab 07"),
    ("moves memory", "sky", "lines", "lab 02"),
    ("useful arithmetic", "blue", "", "MFU"),
    ("waits for the link", "orange", "dots", "lab 05"),
)


def step_time(data: int = 10, memory: int = 40, arithmetic: int = 30, link: int = 20) -> Sketch:
    """Where one step's time goes, in per cent that you choose: an example, not a measurement."""
    shares = [whole(name, value, 0, 100) for name, value in
              (("data", data), ("memory", memory), ("arithmetic", arithmetic), ("link", link))]  # fmt: skip
    total = max(1, sum(shares))
    shapes: list[Shape] = [Words(x=14, y=16, text="One step of one device", size=13, bold=True)]
    x, wide = 14.0, 720.0
    for share, (_, pen, hatch, _) in zip(shares, STEP, strict=True):
        width = wide * share / total
        if not share:
            continue
        shapes.append(Box(x=x, y=36, width=width, height=46, fill=pen, hatch=hatch, edge="ground"))
        text = f"{100 * share / total:.0f} %"
        shapes.append(Box(x=x + width / 2 - 22, y=49, width=44, height=20, fill="ground", strength=0.88))
        shapes.append(Words(x=x + width / 2, y=59, text=text, size=12, anchor="middle", bold=True))
        x += width
    at = 14.0
    for name, pen, hatch, where in STEP:
        shapes.append(Box(x=at, y=98, width=18, height=14, fill=pen, hatch=hatch, edge="soft"))
        shapes.append(Words(x=at + 24, y=105, text=f"{name} ({where})", size=11.5))
        at += 40 + text_width(f"{name} ({where})", 11.5)
    said = ", ".join(f"{name} {100 * share / total:.0f} %" for share, (name, *_) in zip(shares, STEP, strict=True))
    busy = f"A device that is busy in all of it has an MFU of {100 * arithmetic / total:.0f} %."
    alt = f"One step's time, as an example: {said}. {busy}"
    return Sketch(max(wide + 28, at), 126, tuple(shapes), alt)


DRAWINGS = {"loss-scale": loss_scale, "step-time": step_time}
