"""Lab 07: how many workers a loader needs, and how many ranks a store feeds."""

from __future__ import annotations

from ...words import plural
from ..input_model import expected_step, store_share
from ..panel import Axis, Chart, Curve, Drawn, Panel, Point, Slider, decades, powers_of_two
from ..scale import share_said, time_said

WORKERS = tuple(range(0, 17))


def draw(prepare_ms: float, compute_ms: float, workers: int, ranks: int, store_mb_per_s: float, batch_mb: float) -> Drawn:
    """The step by workers of one rank, and what each of several ranks gets of one store."""
    step = expected_step(prepare_ms, compute_ms, workers)
    enough = next((w for w in WORKERS if w and prepare_ms / w <= compute_ms), None)
    share, needed = store_share(store_mb_per_s, ranks), batch_mb / (step / 1e3)
    idle = 1 - compute_ms / step
    have = f"With {plural(workers, 'worker')}" if workers else "Without workers"
    said = (
        f"Preparing takes {time_said(prepare_ms / 1e3)} and computing {time_said(compute_ms / 1e3)}. {have} a step takes "
        f"{time_said(step / 1e3)}, and the device waits for {share_said(idle)} of it. "
        + (f"From {plural(enough, 'worker')} on it does not wait. " if enough else "Sixteen workers are too few. ")
        + f"A rank reads {needed:.3g} MB/s; the store gives each of {plural(ranks, 'rank')} at most {share:.3g} MB/s."
    )
    numbers = {"step_ms": step, "waiting": idle, "needed_mb_per_s": needed, "share_mb_per_s": share}
    charts = (_by_workers(prepare_ms, compute_ms, workers, step), _by_ranks(ranks, store_mb_per_s, needed))
    return Drawn(charts=charts, said=said, numbers=numbers)


def _by_workers(prepare_ms: float, compute_ms: float, workers: int, step: float) -> Chart:
    x = tuple(float(count) for count in sorted({*WORKERS, workers}))
    return Chart(
        title="A step, by workers",
        x=Axis(label="workers of one rank (w); 0: none", low=0, high=x[-1]),
        y=Axis(label="step", unit="ms", low=0),
        curves=(
            Curve(label="step", x=x, y=tuple(expected_step(prepare_ms, compute_ms, int(w)) for w in x)),
            Curve(label="computing alone (C)", x=(0.0, x[-1]), y=(compute_ms, compute_ms), minor=True),
        ),
        points=(Point(label="your workers", x=float(workers), y=step),),
    )


def _by_ranks(ranks: int, store_mb_per_s: float, needed: float) -> Chart:
    x = tuple(float(count) for count in powers_of_two(1, 1024))
    return Chart(
        title="What each rank gets of one store",
        x=Axis(label="ranks (W)", log=True, low=1, high=1024),
        y=Axis(label="rate of one rank", unit="MB/s", log=True),
        curves=(
            Curve(label="the store's share, R/W", x=x, y=tuple(store_share(store_mb_per_s, int(w)) for w in x)),
            Curve(label="what a rank needs", x=(1.0, 1024.0), y=(needed, needed), minor=True),
        ),
        points=(Point(label="your ranks", x=float(ranks), y=min(needed, store_share(store_mb_per_s, ranks))),),
    )


PANEL = Panel(
    title="How many workers, and how many ranks on one store?",
    sliders=(
        Slider(name="prepare_ms", label="preparing a batch (D)", unit="ms", stops=decades(1, 10000), value=200.0),
        Slider(name="compute_ms", label="computing on it (C)", unit="ms", stops=decades(1, 10000), value=50.0),
        Slider(name="workers", label="workers of one rank (w)", unit="", stops=WORKERS, value=0),
        Slider(name="ranks", label="ranks (W)", unit="", stops=powers_of_two(1, 1024), value=8),
        Slider(name="store_mb_per_s", label="rate of the store, all readers together (R)", unit="MB/s",
               stops=decades(1, 100000), value=1000.0),
        Slider(name="batch_mb", label="bytes of a batch", unit="MB", stops=decades(0.01, 1000), value=20.0),
    ),
    draw=draw,
    source="without workers D + C, with them max(D/w, C): a pipeline of two stages; a store of rate R gives W ranks R/W",
)  # fmt: skip
