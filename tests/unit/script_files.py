"""Files as a script's own probes leave them: what was recorded is little, and differs."""

from pathlib import Path

import numpy as np

from labkit.record.probe import Probe

KINDS = ("no step", "one empty step", "empty steps", "one read", "reads", "loss", "seldom a loss", "reads and loss", "a NaN")
STEPS = 12


def write(folder: Path, kind: str, ranks: int = 2, **facts) -> Path:
    """Write what `ranks` ranks recorded into `folder`, all of it the same on every rank."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(ranks):
        probe = Probe(folder / f"rank-{rank:05d}.jsonl", rank=rank, world_size=ranks)
        probe.declare(**facts)
        record(probe, kind)
        probe.close()
    return folder


def record(probe: Probe, kind: str) -> None:
    if kind == "no step":
        probe.event("started")
        return
    steps = 1 if kind.startswith("one") else STEPS
    batches = (np.arange(4 * step, 4 * step + 4) for step in range(steps))
    if "read" in kind:
        for step, _ in enumerate(probe.batches(batches)):
            if "loss" in kind:
                probe.scalar("loss_local", 1 / (step + 1))
        return
    for step in range(steps):
        probe.begin_step()
        if kind == "loss" or (kind == "seldom a loss" and step % 5 == 0):
            probe.scalar("loss_local", 1 / (step + 1))
        if kind == "a NaN":
            probe.scalar("loss_local", float("nan"))
            probe.scalar("batch_samples", 4)
        probe.end_step()
