"""Lab 02: what a product's shape loses to tiles and waves."""

from __future__ import annotations

from collections.abc import Callable

from ..panel import Axis, Chart, Curve, Drawn, Panel, Point, Slider
from ..scale import share_said
from ..tiles import tiling

TILES = {"256 × 128": (256, 128), "128 × 128": (128, 128), "64 × 64": (64, 64)}
AROUND = 48
"""Places to either side of the slider's that a curve is drawn at."""


def draw(rows: int, columns: int, tile: str, multiprocessors: int) -> Drawn:
    """The share of the work that was asked for, by columns and by rows."""
    cut = TILES[tile]
    found = tiling(rows, columns, cut, multiprocessors)
    tiles = f"{found.tiles:,} {'tile' if found.tiles == 1 else 'tiles'} of {tile}"
    waves = f"{found.waves:,} {'wave' if found.waves == 1 else 'waves'} of {multiprocessors}"
    said = (
        f"A result of {rows:,} × {columns:,} takes {tiles}, in {waves}. Tiles that hang over leave "
        f"{share_said(found.in_tiles)} of the work useful, and the last wave leaves {share_said(found.in_waves)}: "
        f"{share_said(found.useful)} together."
    )
    numbers = {"tiles": found.tiles, "waves": found.waves, "useful": found.useful, "in_tiles": found.in_tiles}
    charts = (
        _chart("columns of the result", columns, cut[1], lambda at: tiling(rows, at, cut, multiprocessors).useful),
        _chart("rows of the result", rows, cut[0], lambda at: tiling(at, columns, cut, multiprocessors).useful),
    )
    return Drawn(charts=charts, said=said, numbers=numbers)


def _chart(label: str, here: int, side: int, useful: Callable[[int], float]) -> Chart:
    step = max(1, side // 8)
    places = sorted({at + more for at in range(step, here + AROUND * step, step) for more in (0, 1)} | {here})
    near = [at for at in places if abs(at - here) <= AROUND * step]
    return Chart(
        title=f"Useful share of the work, by {label.split()[0]}",
        x=Axis(label=label),
        y=Axis(label="useful share of the work", percent=True, low=0, high=1.05),
        curves=(Curve(label="of whole tiles in whole waves", x=tuple(map(float, near)), y=tuple(map(useful, near))),),
        points=(Point(label="your product, at its best", x=float(here), y=useful(here)),),
    )


PANEL = Panel(
    title="What does the shape of a product cost?",
    sliders=(
        Slider(name="rows", label="rows of the result (tokens at once)", unit="",
               stops=(16, 128, 256, 512, 1024, 1792, 2048, 2304, 2305, 4096, 8192, 16384), value=2304),
        Slider(name="columns", label="columns of the result (width, or vocabulary)", unit="",
               stops=(64, 768, 1024, 1536, 1537, 1600, 2048, 4096, 5120, 11008, 32000, 50257, 50304), value=1536),
        Slider(name="tile", label="tile", unit="", stops=tuple(TILES), value="256 × 128"),
        Slider(name="multiprocessors", label="tiles at once (multiprocessors)", unit="",
               stops=(64, 80, 108, 114, 132, 144), value=108),
    ),
    draw=draw,
    source="whole tiles in whole waves: NVIDIA, Matrix Multiplication Background User's Guide, 2023, chapter 3",
)  # fmt: skip
