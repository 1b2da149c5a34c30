"""Where to begin in the exercise on the loader, hints, and a solution."""

from __future__ import annotations

from ..help import Help

_FIRST = Help(
    start="""\
from torch.utils.data import DataLoader, DistributedSampler


def my_loader(data, rank, world_size, batch, seed):
    sampler = DistributedSampler(data, world_size, rank, seed=seed)
    return DataLoader(data, batch, sampler=sampler)  # one waits while the other works: repair it


lab.check(my_loader)
""",
    hints=(
        "One process prepares and computes in turn. Who could prepare while the device computes?",
        "With w workers a step takes max(D / w, C). D is 1.5 C here: how many workers make D / w smaller than "
        "C, with something to spare?",
        "persistent_workers=True keeps the workers from one epoch to the next. Or prepare each sample once: "
        "labkit.workloads.scans.DiskCache(data).",
    ),
    solution="""\
from torch.utils.data import DataLoader, DistributedSampler


def my_loader(data, rank, world_size, batch, seed):
    sampler = DistributedSampler(data, world_size, rank, seed=seed)
    return DataLoader(data, batch, sampler=sampler, num_workers=3, persistent_workers=True)
""",
    note="Would one worker do? Work it out from max(D/w, C) first, then try.",
)


def first() -> Help:
    """For the lab's exercise."""
    return _FIRST
