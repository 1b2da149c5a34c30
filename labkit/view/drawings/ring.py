"""The ring all-reduce, state by state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...theory.panel import Slider
from ...theory.ring_steps import RingState, ring_states
from ..moving import Moving, Shown
from ..sketch import Box, Line, Shape, Sketch, Words
from . import whole

CELL, GAP = 40.0, 26.0
MOST_RANKS, MOST_DRAWN = 8, 5
"""Ranks that can be gone through step by step, and ranks of which every state fits on one page."""


def _said(state: RingState, last: int) -> str:
    if state.step == 0:
        return "Before: each rank has its own numbers"
    what = "adds" if state.half == "reduce-scatter" else "keeps"
    return f"Step {state.step} of {last}, {state.half}: the next rank {what}"


def _state(state: RingState, last: int, x: float, y: float, *, title: bool = True) -> list[Shape]:
    """Ranks side by side, each a column of chunks; what a cell holds is how many ranks' numbers are in its sum."""
    ranks = len(state.holds)
    shapes: list[Shape] = [Words(x=x, y=y + 9, text=_said(state, last), size=12, bold=True)] if title else []
    top = y + 46
    arrived = {(each.target, each.chunk) for each in state.sent}
    for rank in range(ranks):
        left = x + rank * (CELL + GAP)
        shapes.append(Words(x=left + CELL / 2, y=top - 12, text=f"rank {rank}", size=11, anchor="middle"))
        for chunk in range(ranks):
            parts = len(state.holds[rank][chunk])
            at = top + chunk * CELL
            full, new = parts == ranks, (rank, chunk) in arrived
            shapes.append(Box(x=left, y=at, width=CELL, height=CELL, fill="green" if full else "sky",
                              hatch="lines" if full else "", strength=1.0 if full else 0.15 + 0.55 * parts / ranks,
                              edge="soft"))  # fmt: skip
            if full:
                shapes.append(Box(x=left + 4, y=at + 10, width=CELL - 8, height=20, fill="ground", strength=0.85))
            if new:
                shapes.append(
                    Box(x=left + 2, y=at + 2, width=CELL - 4, height=CELL - 4, fill="ground", strength=0.0, edge="orange")
                )
            shapes.append(
                Words(x=left + CELL / 2, y=at + CELL / 2, text=f"{parts}/{ranks}", size=12, anchor="middle", bold=full)
            )
    for each in state.sent:
        at = top + (each.chunk + 0.5) * CELL
        if each.target:
            begin, end = x + each.source * (CELL + GAP) + CELL, x + each.target * (CELL + GAP)
            shapes.append(Line(points=((begin + 2, at), (end - 2, at)), pen="orange", width=2, arrow=True))
        else:  # from the last rank around to the first
            right = x + each.source * (CELL + GAP) + CELL
            shapes.append(Line(points=((right + 2, at), (right + 20, at)), pen="orange", width=2, arrow=True))
            shapes.append(Line(points=((x - 20, at), (x - 2, at)), pen="orange", width=2, arrow=True))
    return shapes


def _size(ranks: int) -> tuple[float, float]:
    return ranks * (CELL + GAP) + 60, ranks * CELL + 66


def ring(ranks: int = 4) -> Sketch:
    """Every state of a ring all-reduce, from each rank's own numbers to the sum on all of them."""
    states = ring_states(whole("ranks", ranks, 2, MOST_DRAWN))
    width, height = _size(ranks)
    width = max(width, 410.0)
    columns = 2
    rows = -(-len(states) // columns)
    last = states[-1].step
    shapes: list[Shape] = []
    for place, state in enumerate(states):
        shapes += _state(state, last, 34 + (place % columns) * width, 10 + (place // columns) * (height + 10))
    key = "n/W: n ranks' numbers are in this chunk's sum.  Green and hatched: the whole sum.  Orange: sent in this step."
    total = 20 + rows * (height + 10)
    shapes.append(Words(x=34, y=total + 2, text=key, size=11, pen="soft"))
    alt = (
        f"A ring all-reduce on {ranks} ranks in {last} steps; each message is cut into {ranks} chunks. In steps 1 to "
        f"{ranks - 1} (reduce-scatter) each rank sends one chunk to the next, which adds it; after them each rank holds the "
        f"whole sum of one chunk. In steps {ranks} to {last} (all-gather) the whole chunks go around, until all ranks hold "
        f"all {ranks}."
    )
    return Sketch(columns * width + 40, total + 20, tuple(shapes), alt)


def ring_steps(ranks: int = 4) -> Moving:
    """One state of the ring at a time."""
    states = ring_states(whole("ranks", ranks, 2, MOST_RANKS))
    last = states[-1].step
    width, height = _size(ranks)

    def show(settings: Mapping[str, Any]) -> Shown:
        state = states[settings["step"]]
        full = sum(state.whole(rank, chunk) for rank in range(ranks) for chunk in range(ranks))
        said = f"{_said(state, last)}. {full} of {ranks * ranks} chunks hold the whole sum."
        sent = "; ".join(f"rank {each.source} sends chunk {each.chunk} to rank {each.target}" for each in state.sent)
        shapes = _state(state, last, 34, 0, title=False)
        return Shown((Sketch(width + 20, height, tuple(shapes), f"{said} {sent}".strip()),), said)

    slider = Slider(name="step", label="step of the ring", unit="", stops=tuple(range(last + 1)), value=0)
    source = f"Exact, by the algorithm (simulated): 2(W−1) = {last} steps of 1/{ranks} of the message each."
    still = ring(ranks) if ranks <= MOST_DRAWN else None
    return Moving(f"A ring all-reduce on {ranks} ranks", (slider,), show, source, still=still)


DRAWINGS = {"ring": ring}
STEPS = {"ring": ring_steps}
