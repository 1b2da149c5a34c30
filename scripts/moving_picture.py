"""Make the README's moving picture, docs/who-read-what.gif, from two runs that this machine makes for it.

    .venv/bin/python scripts/moving_picture.py

Each square is a sample of the digits, and each picture of the sequence is a step. On the left, all ranks read the same
data. On the right each rank has its own share. Both runs have the same ranks, batch and data.
"""

import io
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

import labkit
from labkit.detect.reads.epoch_reads import Reads
from labkit.detect.reads.measures import first_epoch
from labkit.view import palette

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "who-read-what.gif"
SIDE, RANKS, BATCH = 16, 4, 8
STEP_MS, END_MS = 280, 3500
TITLES = {"broken": "broken: no sampler", "fixed": "fixed: DistributedSampler"}


def reads(variant: str) -> Reads:
    """What was read in one epoch of `SIDE` × `SIDE` samples on `RANKS` ranks, in batches of `BATCH`."""
    reading = labkit.lab("duplicate-data").run(variant, ranks=RANKS, num_samples=SIDE**2, batch=BATCH, epochs=1)
    seen = first_epoch(reading.run)
    assert seen is not None, variant
    return seen


def counts(seen: Reads, steps: int) -> np.ndarray:
    """How often each sample was read in the first `steps` steps by all ranks together, shape [SIDE, SIDE]."""
    read = [batch for batches in seen.batches for batch in list(batches)[:steps]]
    return np.bincount(np.concatenate([np.zeros(0, np.int64), *read]).astype(np.int64), minlength=SIDE**2).reshape(
        SIDE, SIDE
    )


def frame(figure: Figure, runs: dict[str, Reads], step: int) -> Image.Image:
    """What both runs have read after `step` steps."""
    figure.clear()
    for axis, (variant, seen) in zip(figure.subplots(1, 2), runs.items(), strict=True):
        done = counts(seen, step)
        for (row, column), times in np.ndenumerate(done):
            colour = palette.LIGHT if not times else palette.by_readers(int(times), RANKS)
            axis.add_patch(_square(column, row, colour, hatch="////" if times > 1 else ""))
        axis.set(xlim=(0, SIDE), ylim=(SIDE, 0), aspect="equal")
        axis.axis("off")
        axis.set_title(TITLES[variant], loc="left", fontsize=13, fontweight="bold")
        over = step >= max(len(batches) for batches in seen.batches)
        said = f"step {min(step, max(map(len, seen.batches)))}: {done.sum():,} reads of {np.count_nonzero(done)} samples"
        axis.text(0, SIDE + 1.1, said + (" · epoch over" if over else ""), fontsize=12, va="center")
    figure.subplots_adjust(left=0.02, right=0.98, top=0.92, bottom=0.06, wspace=0.06)
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_figure(buffer, format="png", dpi=64)
    return Image.open(buffer).convert("RGB").quantize(24)


def _square(column: int, row: int, colour: str, hatch: str) -> Rectangle:
    return Rectangle((column + 0.07, row + 0.07), 0.86, 0.86, facecolor=colour, edgecolor="white", linewidth=0, hatch=hatch)


def main() -> None:
    """Run both and write the picture."""
    runs = {variant: reads(variant) for variant in TITLES}
    steps = max(len(batches) for seen in runs.values() for batches in seen.batches)
    figure = Figure(figsize=(11.5, 6.4))
    frames = [frame(figure, runs, step) for step in range(steps + 1)]
    times = [STEP_MS] * steps + [END_MS]
    frames[0].save(PICTURE, save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=True)


if __name__ == "__main__":
    main()
