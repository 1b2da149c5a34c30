"""The record of a long run as the doctor makes it: one small rank is really watched, and stands for all."""

from __future__ import annotations

from pathlib import Path

import msgspec
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from labkit.record.probe import Probe
from labkit.watch.outside.attach import Attached

BATCH, EPOCH = 64, 500
"""Samples of a rank and step, and steps of an epoch."""


def write(folder: str, *, ranks: int, steps: int) -> None:
    """Watch a training of so many steps, and write it for each rank with a share of the data of its own."""
    first = Path(folder) / "rank-00000.jsonl"
    attached = Attached(Probe(first, rank=0, local_rank=0, world_size=ranks))
    try:
        _train(steps)
    finally:
        attached.close(finished=True)
    lines = [msgspec.json.decode(line) for line in first.read_bytes().splitlines()]
    for rank in range(ranks):
        with (Path(folder) / f"rank-{rank:05d}.jsonl").open("wb") as file:
            for line in lines:
                file.write(msgspec.json.encode(_of_rank(line, rank, ranks)) + b"\n")


def _of_rank(line: dict, rank: int, ranks: int) -> dict:
    if line["kind"] == "head":
        facts = line["facts"] | {"dataset_size": BATCH * EPOCH * ranks, "group_size": ranks}
        return line | {"rank": rank, "local_rank": rank, "facts": facts}
    if line["kind"] == "step" and "ids" in line:
        line = line | {"ids": {name: [one * ranks + rank for one in ids] for name, ids in line["ids"].items()}}
        of_rank = {name: [(one ^ (rank << 40)) for one in hashes] for name, hashes in line.get("digests", {}).items()}
        return line | ({"digests": of_rank} if of_rank else {})
    return line


def _train(steps: int) -> None:
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(BATCH * EPOCH, 4), torch.randn(BATCH * EPOCH, 1))
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader, done = DataLoader(data, batch_size=BATCH, shuffle=True), 0
    while done < steps:
        for samples, targets in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(samples), targets).backward()
            optimizer.step()
            done += 1
