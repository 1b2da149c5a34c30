"""A training in blocks, bare and under the doctor's watchers in turn, in one process: what each step takes.

    python doctor_block.py SIZE BLOCKS STEPS FOLDER

Other programs strike neighbouring blocks alike, and the second bare block of each turn is the control. Printed as JSON:
processor time of each step in µs, by block, and bytes of the record a step; the losses are equal to the bit, or it fails.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import torch
from doctor_loop import SIZES
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from labkit.record.probe import Probe
from labkit.watch.outside.attach import Attached
from labkit.watch.outside.sampling import FIRST

EPOCH = 200
"""Batches of an epoch."""


def block(size: str, steps: int) -> tuple[list[float], list[float]]:
    """(µs of each step but the first ones, all losses)."""
    inputs, hidden, batch, _ = SIZES[size]
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(batch * EPOCH, inputs), torch.randint(0, 10, (batch * EPOCH,)))
    loader = DataLoader(data, batch_size=batch, shuffle=True)
    layers = [nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 10)]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10**6)
    times, losses = [], []
    begun = 0
    while True:
        for samples, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(samples), labels)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            now = time.thread_time_ns()
            if len(losses) > FIRST + 1:
                times.append((now - begun) / 1e3)
            begun = now
            if len(times) == steps:
                return times, losses


def watched(size: str, steps: int, path: Path) -> tuple[list[float], list[float], float]:
    """The same under the watchers, and bytes of the record a step."""
    attached = Attached(Probe(path, rank=0, local_rank=0, world_size=1))
    try:
        times, losses = block(size, steps)
    finally:
        attached.close(finished=True)
    assert not attached.patches.faults
    return times, losses, path.stat().st_size / len(losses)


def main(size: str, blocks: int, steps: int, folder: Path) -> None:
    torch.set_num_threads(1)
    block(size, 10)
    found: dict[str, list[list[float]]] = {"bare": [], "doctor": [], "control": []}
    a_step, before = 0.0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(blocks):
        bare, losses = block(size, steps)
        seen, same, a_step = watched(size, steps, folder / "rank-00000.jsonl")
        control, again = block(size, steps)
        assert losses == same == again
        for name, times in (("bare", bare), ("doctor", seen), ("control", control)):
            found[name].append(times)
    more = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    print(json.dumps({"times": found, "bytes_a_step": a_step, "more_resident_bytes": more}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
