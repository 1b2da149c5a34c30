"""Who keeps and who reads what: ZeRO's shards, and the samples that a sampler deals out."""

from __future__ import annotations

from ...theory.sampling import dealt
from ...theory.zero import RECIPES, STAGE_NAMES, STAGES, state
from ..sketch import Box, Hatch, Pen, Shape, Sketch, Words
from . import whole

PARTS: tuple[tuple[str, Pen, Hatch], ...] = (
    ("parameters", "blue", ""),
    ("gradients", "sky", "lines"),
    ("optimizer state", "orange", "dots"),
)
DIVIDED_FROM = {"parameters": 3, "gradients": 2, "optimizer state": 1}
"""The stage from which a part is divided among the ranks."""


def shards(ranks: int = 4) -> Sketch:
    """What each rank keeps of parameters, gradients and optimizer state at each stage."""
    whole("ranks", ranks, 2, 8)
    shapes: list[Shape] = []
    heights = {"parameters": 48.0, "gradients": 48.0, "optimizer state": 144.0}  # 2, 2 and 12 bytes would hide the first two
    column, gap, left = 26.0, 5.0, 16.0
    x = left
    for name, pen, hatch in PARTS:
        shapes.append(Box(x=x, y=10, width=18, height=13, fill=pen, hatch=hatch, edge="soft"))
        shapes.append(Words(x=x + 24, y=17, text=name, size=11.5))
        x += 60 + 7 * len(name)
    shapes.append(Box(x=x, y=10, width=18, height=13, fill="ground", edge="line"))
    shapes.append(Words(x=x + 24, y=17, text="kept by another rank", size=11.5))
    kept = []
    wide = ranks * (column + gap) + 26
    for stage in STAGES:
        begin = left + stage * wide
        shapes.append(Words(x=begin, y=44, text=STAGE_NAMES[stage], size=13, bold=True))
        for rank in range(ranks):
            _rank(shapes, begin + rank * (column + gap), column, rank, ranks, stage, heights)
        bytes_kept = state(1.0, ranks, stage, RECIPES["mixed Adam"]).total
        kept.append(f"{STAGE_NAMES[stage]} {bytes_kept:.3g}")
        shapes.append(Words(x=begin, y=338, text=f"{bytes_kept:.3g} bytes", size=11.5))
        shapes.append(Words(x=begin, y=354, text="a parameter", size=11.5))
    alt = (
        f"Four stages on {ranks} ranks, each rank a column of parameters, gradients and optimizer state (heights not to "
        "scale). DDP: every rank keeps everything. ZeRO-1 divides the optimizer state, ZeRO-2 the gradients too, ZeRO-3 the "
        f"parameters too; each rank keeps its 1/{ranks}. Bytes a parameter and rank in mixed precision with Adam: "
        f"{', '.join(kept)} (simulated, arXiv:1910.02054)."
    )
    return Sketch(max(left + 4 * wide, x + 180), 372, tuple(shapes), alt)


def _rank(shapes: list[Shape], x: float, width: float, rank: int, ranks: int, stage: int, heights: dict[str, float]) -> None:
    y = 76.0
    shapes.append(Words(x=x + width / 2, y=64, text=str(rank), size=11, anchor="middle", pen="soft"))
    for name, pen, hatch in PARTS:
        height = heights[name]
        if stage >= DIVIDED_FROM[name]:
            shapes.append(Box(x=x, y=y, width=width, height=height, fill="ground", edge="line"))
            part = height / ranks
            shapes.append(Box(x=x, y=y + rank * part, width=width, height=part, fill=pen, hatch=hatch, edge="soft"))
        else:
            shapes.append(Box(x=x, y=y, width=width, height=height, fill=pen, hatch=hatch, edge="soft"))
        y += height + 4


def sampler(samples: int = 10, ranks: int = 4) -> Sketch:
    """One epoch's order, padded and dealt out to the ranks."""
    whole("samples", samples, 1, 16)
    whole("ranks", ranks, 1, 4)
    order = [(place * 7 + 3) % 17 for place in range(17) if (place * 7 + 3) % 17 < samples]  # any order will do
    hands = dealt(order, ranks)
    each, padded = len(hands[0]), len(hands[0]) * ranks
    fills: tuple[tuple[Pen, Hatch], ...] = (("sky", ""), ("yellow", "back"), ("orange", "dots"), ("green", "lines"))
    cell, left = 34.0, 96.0
    shapes: list[Shape] = [
        Words(x=14, y=14, text="One order for all ranks, from the seed and the epoch", size=12.5, bold=True)
    ]

    def sample(x: float, y: float, number: int, rank: int, repeated: bool) -> None:
        pen, hatch = fills[rank]
        shapes.append(Box(x=x, y=y, width=cell - 4, height=30, fill=pen, hatch=hatch, edge="ink" if repeated else "soft"))
        shapes.append(Box(x=x + 5, y=y + 6, width=cell - 14, height=18, fill="ground", strength=0.88))
        shapes.append(Words(x=x + cell / 2 - 2, y=y + 15, text=str(number), size=12, anchor="middle", bold=repeated))

    shapes.append(Words(x=14, y=46, text="order", size=12))
    for place in range(padded):
        number, x = hands[place % ranks][place // ranks], left + place * cell
        sample(x, 31, number, place % ranks, place >= samples)
        if place >= samples:
            shapes.append(Words(x=x + cell / 2 - 2, y=72, text="again", size=10, anchor="middle", pen="soft"))
    shapes.append(Words(x=14, y=96, text="Every W-th sample goes to a rank", size=12.5, bold=True))
    for rank, hand in enumerate(hands):
        y = 112 + rank * 38
        shapes.append(Words(x=14, y=y + 15, text=f"rank {rank}", size=12))
        for place, number in enumerate(hand):
            sample(left + place * cell, y, number, rank, place * ranks + rank >= samples)
    lines = "; ".join(f"rank {rank} reads {', '.join(map(str, hand))}" for rank, hand in enumerate(hands))
    alt = (
        f"DistributedSampler deals {samples} samples to {ranks} ranks. The order is filled up with its own beginning to "
        f"{padded}, so that every rank reads {each} ({padded - samples} read again); then {lines}."
    )
    return Sketch(max(left + padded * cell + 10, 430), 120 + ranks * 38, tuple(shapes), alt)


DRAWINGS = {"shards": shards, "sampler": sampler}
