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
        "Which of the function's arguments does the starting code not use? A rank has to know which part is its own.",
        "All ranks need the same order, and a new one in each epoch. So it depends on the seed and the epoch, and not on "
        "the rank. Then each rank takes every W-th sample of it.",
        "torch.randperm(len(data), generator=...) is such an order. Fill it up with its own beginning to a multiple of "
        "world_size, take order[rank::world_size], and give torch.utils.data.Subset to the DataLoader.",
    ),
    solution="""\
import math

import torch
from torch.utils.data import DataLoader


def my_loader(data, rank, world_size, batch, seed, epoch):
    shuffle = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(len(data), generator=shuffle).tolist()
    each = math.ceil(len(data) / world_size)
    order = (order * world_size)[: each * world_size]  # padding
    mine = torch.utils.data.Subset(data, order[rank::world_size])
    return DataLoader(mine, batch)
""",
    note="DistributedSampler(data, world_size, rank, seed=seed), with set_epoch(epoch), does the same in two lines.",
)


def first() -> Help:
    """For the lab's exercise."""
    return _FIRST
