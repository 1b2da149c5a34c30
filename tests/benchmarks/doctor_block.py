"""A training in blocks, bare and under the doctor's watchers in turn, in one process: what each step takes.

    python doctor_block.py SIZE BLOCKS STEPS FOLDER

All blocks do the same, step for step. Of each step the least processor time over the blocks counts: what other programs add
to a step they add to few of its blocks. A second bare block of each turn is the control. Printed as JSON: by kind of step
how many there are and the mean of these in µs; bytes of the record a step; the losses are equal to the bit, or it fails.
"""

from __future__ import annotations

import itertools
import json
import resource
import statistics
import sys
import time
from pathlib import Path

import torch
from doctor_loop import SIZES
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from labkit.record.probe import Probe
from labkit.watch.outside.attach import Attached
from labkit.watch.outside.sampling import FIRST, is_due

EPOCH = 150
"""Batches of an epoch."""

NAMES = ("bare", "doctor", "control")


def block(size: str, steps: int) -> tuple[list[float], list[float]]:
    """(µs of each step but the very first, all losses)."""
    inputs, hidden, batch, _ = SIZES[size]
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(batch * EPOCH, inputs), torch.randint(0, 10, (batch * EPOCH,)))
    loader = DataLoader(data, batch_size=batch, shuffle=True)
    layers = [nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 10)]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10**6)
    ends, losses = [], []
    while True:
        for samples, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(samples), labels)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            ends.append(time.thread_time_ns())
            if len(losses) == steps:
                return [(later - one) / 1e3 for one, later in itertools.pairwise(ends)], losses


def watched(size: str, steps: int, path: Path) -> tuple[list[float], list[float], float]:
    """The same under the watchers, and bytes of the record a step."""
    attached = Attached(Probe(path, rank=0, local_rank=0, world_size=1))
    try:
        times, losses = block(size, steps)
    finally:
        attached.close(finished=True)
    assert not attached.patches.faults
    return times, losses, path.stat().st_size / len(losses)


def kind_of(update: int) -> str:
    """What the doctor does at an update, from 1 on."""
    if update <= FIRST:
        return "first"
    if is_due(update) or is_due(update - 1):  # the step after a burst ends it
        return "burst"
    return "followed, rows hashed" if update <= EPOCH else "followed"


def main(size: str, blocks: int, steps: int, folder: Path) -> None:
    torch.set_num_threads(1)
    block(size, 10)
    found: dict[str, list[list[float]]] = {name: [] for name in NAMES}
    a_step, before = 0.0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(blocks):
        bare, losses = block(size, steps)
        seen, same, a_step = watched(size, steps, folder / "rank-00000.jsonl")
        control, again = block(size, steps)
        assert losses == same == again
        for name, times in zip(NAMES, (bare, seen, control), strict=True):
            found[name].append(times)
    more = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    least = {name: [min(of_step) for of_step in zip(*times, strict=True)] for name, times in found.items()}
    kinds: dict[str, dict[str, float]] = {}
    for kind in ("first", "followed, rows hashed", "followed", "burst"):
        at = [step for step in range(steps - 1) if kind_of(step + 2) == kind]
        kinds[kind] = {"steps": len(at), **{name: statistics.mean(least[name][step] for step in at) for name in NAMES}}
    print(json.dumps({"kinds": kinds, "bytes_a_step": a_step, "more_resident_bytes": more}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
