"""Loaders of a stream that lies in files, whose number the ranks may not divide; and what Join makes of it, in one process.

Shapes: a batch is (images [B, 64] in 0..1, labels [B], ids [B]).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import chain, zip_longest
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Subset

from ...record.probe import Probe
from ...workloads.loop import keep_weights


def uneven_shards(data, rank, world_size, batch, seed, epoch, shards=6):
    files = files_of(len(data), shards, seed + epoch)
    shares = [list(chain(*files[r::world_size])) for r in range(world_size)]
    steps = min(math.ceil(len(share) / batch) for share in shares)
    return DataLoader(Subset(data, shares[rank][: steps * batch]), batch)


def uneven_join(data, rank, world_size, batch, seed, epoch, shards=6):
    files = files_of(len(data), shards, seed + epoch)
    share = list(chain(*files[rank::world_size]))
    return DataLoader(Subset(data, share), batch)


def split_by_node(data, rank, world_size, batch, seed, epoch, shards=6):
    files = files_of(len(data), shards, seed + epoch)
    if len(files) % world_size == 0:
        shares = [list(chain(*files[r::world_size])) for r in range(world_size)]
    else:
        stream = list(chain(*files))
        shares = [stream[r::world_size] for r in range(world_size)]
    return DataLoader(Subset(data, with_equal_steps(shares, rank, batch)), batch)


def files_of(num_samples: int, shards: int, seed: int) -> list[list[int]]:
    """The ids in each file. A seed decides the order of the files, and that within each, as a buffer that shuffles does.

    Sizes differ by one at most, and none is empty.
    """
    shards = min(shards, num_samples)
    bounds = [num_samples * at // shards for at in range(shards + 1)]
    shuffle = torch.Generator().manual_seed(seed)
    order = torch.randperm(shards, generator=shuffle).tolist()
    places = [torch.randperm(bounds[at + 1] - bounds[at], generator=shuffle) + bounds[at] for at in order]
    return [of_file.tolist() for of_file in places]


def with_equal_steps(shares: list[list[int]], rank: int, batch: int) -> list[int]:
    """A rank's share, with samples of its beginning again if it would take fewer steps than another rank's."""
    steps = max(math.ceil(len(share) / batch) for share in shares)
    own = shares[rank]
    lacking = max(0, (steps - 1) * batch + 1 - len(own))
    return own + (own or shares[0])[:1] * lacking


OF_FILES = (uneven_shards, uneven_join, split_by_node)
"""Loaders of a stream that lies in files."""


def train_as_if_joined(
    model: Any,
    loaders_of_epoch: Callable[[int], list[Iterable]],
    probe: Probe,
    optimizer: torch.optim.Optimizer,
    *,
    epochs: int,
    max_steps: int | None,
    device: torch.device | str,
) -> None:
    """What torch's Join makes of ranks that take unequally many steps, in one process, without a group.

    The gradient of a step is the sum of the mean gradients of the ranks that are left, divided by the number of all ranks:
    a rank that has ended gives 0.

    Args:
        loaders_of_epoch: the loader of each rank.
    """
    for epoch in range(epochs):
        loaders = loaders_of_epoch(epoch)
        for batches in zip_longest(*loaders):
            if max_steps is not None and probe.step + 1 >= max_steps:
                break
            left = [batch for batch in batches if batch is not None]
            probe.begin_step(epoch)
            losses = [cross_entropy(model(images.to(device)), labels.to(device)) for images, labels, _ in left]
            optimizer.zero_grad()
            (torch.stack(losses).sum() / len(loaders)).backward()
            optimizer.step()
            probe.scalar("loss_local", torch.stack(losses).mean().item())
            probe.scalar("batch_samples", sum(len(labels) for _, labels, _ in left))
            probe.end_step()
    keep_weights(model, probe)
