"""Where to begin in the exercise on the loader, hints, and a solution."""

from __future__ import annotations

from ..help import Help

_FIRST = Help(
    start="""\
import torch
from torch.utils.data import DataLoader


def my_loader(data, rank, world_size, batch, seed, epoch):
    # every rank reads everything: repair it
    shuffle = torch.Generator().manual_seed(seed + epoch)
    return DataLoader(data, batch, shuffle=True, generator=shuffle)


lab.check(my_loader)
""",
    hints=(
        "Which of the function's arguments does the starting code use, and which not? A rank has to know "
        "which part is its own.",
        "All ranks need one order, another one each epoch: an order that depends on seed and epoch, and on "
        "nothing of the rank. Then each rank takes every W-th.",
        "DistributedSampler(data, world_size, rank, seed=seed) does so, and pads the shares to equal size. It "
        "learns of the epoch from set_epoch(epoch).",
    ),
    solution="""\
from torch.utils.data import DataLoader, DistributedSampler


import math

def my_loader(data, rank, world_size, batch, seed, epoch):
    shuffle = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(len(data), generator=shuffle).tolist()
    each = math.ceil(len(data) / world_size)
    order = (order * world_size)[: each * world_size]  # padding
    mine = torch.utils.data.Subset(data, order[rank::world_size])
    return DataLoader(mine, batch)
""",
    note="Can you also do it without DistributedSampler? You need one permutation that is the same on every "
    "rank, and a slice of it.",
)


def first() -> Help:
    """For the lab's exercise."""
    return _FIRST
