"""What the ranks of the benchmarks run, and how figures are printed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from labkit.workloads.digits import Digits
from labkit.workloads.models import build


def empty(context):
    return None


def twenty_ddp_steps(context):
    """The digits' MLP, 20 steps of 16 samples on each rank."""
    data = Digits()
    images, labels = data.images, data.labels
    model = DistributedDataParallel(build("mlp", seed=0))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loss = torch.zeros(())
    for step in range(20):
        rows = slice((step * context.world_size + context.rank) * 16, (step * context.world_size + context.rank + 1) * 16)
        loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def seconds(action: Callable[[], object], repeats: int) -> list[float]:
    """How long each of several calls took, sorted."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return sorted(times)


def row(what: str, times: list[float], note: str = "") -> str:
    return (
        f"  {what:<44} median {statistics.median(times):7.3f} s   min {times[0]:7.3f}   max {times[-1]:7.3f}"
        f"   n {len(times)}   {note}"
    )
