"""Lab 03: how much of the data one rank has seen, by how its share is drawn."""

from __future__ import annotations

from ..panel import Axis, Chart, Curve, Drawn, Panel, Point, Slider, powers_of_two
from ..sampling import seen_after
from ..scale import share_said

EPOCHS = tuple(range(1, 65))


def draw(ranks: int, epochs: int) -> Drawn:
    """The share that one rank has seen, by epoch, and after these epochs by ranks."""
    seen = seen_after(epochs, ranks)
    said = (
        f"Dealt anew each epoch, one of {ranks:,} ranks has seen {share_said(seen)} of the data after {epochs} epochs. "
        f"Dealt once, it has seen {share_said(1 / ranks)} and never sees the rest. Without a sampler each rank sees all of "
        "it, and so does every other rank."
    )
    return Drawn(
        charts=(_by_epoch(ranks, epochs, seen), _by_ranks(ranks, epochs, seen)),
        said=said,
        numbers={"seen": seen, "seen_if_dealt_once": 1 / ranks},
    )


def _by_epoch(ranks: int, epochs: int, seen: float) -> Chart:
    last = max(8, 2 * epochs)
    x = tuple(float(epoch) for epoch in range(last + 1))
    return Chart(
        title="What one rank has seen, by epoch",
        x=Axis(label="epochs (e)", low=0, high=last),
        y=Axis(label="share of the data", percent=True, low=0, high=1.05),
        curves=(
            Curve(label="dealt anew each epoch", x=x, y=tuple(seen_after(epoch, ranks) for epoch in x)),
            Curve(label="dealt once (no set_epoch)", x=(1.0, x[-1]), y=(1 / ranks, 1 / ranks)),
            Curve(label="every rank reads all (no sampler)", x=(1.0, x[-1]), y=(1.0, 1.0)),
        ),
        points=(Point(label="your epochs", x=float(epochs), y=seen),),
    )


def _by_ranks(ranks: int, epochs: int, seen: float) -> Chart:
    x = tuple(float(count) for count in powers_of_two(1, 1024))
    return Chart(
        title=f"After {epochs} epochs, by ranks",
        x=Axis(label="ranks (W)", log=True, low=1, high=1024),
        y=Axis(label="share of the data", percent=True, low=0, high=1.05),
        curves=(
            Curve(label="dealt anew each epoch", x=x, y=tuple(seen_after(epochs, int(count)) for count in x)),
            Curve(label="dealt once (no set_epoch)", x=x, y=tuple(1 / count for count in x)),
        ),
        points=(Point(label="your ranks", x=float(ranks), y=seen),),
    )


PANEL = Panel(
    title="How much of the data has one rank seen?",
    sliders=(
        Slider(name="ranks", label="ranks (W)", unit="", stops=powers_of_two(1, 1024), value=4),
        Slider(name="epochs", label="epochs (e)", unit="", stops=EPOCHS, value=2),
    ),
    draw=draw,
    source="1 − (1 − 1/W)^e: the chance that at least one of e fair deals gives a sample to this rank",
)
