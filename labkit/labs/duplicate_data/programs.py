"""The loaders of each variant, and the program that trains with one of them.

A loader function answers: which batches does rank `rank` of `world_size` read in epoch `epoch`? It is all that differs
between the variants, and what the exercise asks for.

Shapes: a batch is (images [B, 64] in 0..1, labels [B], ids [B]). B is `batch`, and less where an epoch ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.algorithms.join import Join
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset, random_split

from ...ranks.context import RankContext, worker_options
from ...record.roles import Role
from ...record.where import where_written
from ...workloads.digits import Digits, DigitStream
from ...workloads.loop import keep_weights, train, wrap_ddp
from ...workloads.models import build
from ..spec import RunPlan, TaskFor
from . import Config
from .files import OF_FILES, split_by_node, train_as_if_joined, uneven_join, uneven_shards

Loader = Callable[..., Iterable]


def broken(data, rank, world_size, batch, seed, epoch):
    shuffle = torch.Generator().manual_seed(seed + epoch)
    return DataLoader(data, batch, shuffle=True, generator=shuffle)


def fixed(data, rank, world_size, batch, seed, epoch):
    sampler = DistributedSampler(data, world_size, rank, seed=seed)
    sampler.set_epoch(epoch)
    return DataLoader(data, batch, sampler=sampler)


def overlapping(data, rank, world_size, batch, seed, epoch):
    shuffle = torch.Generator().manual_seed(seed + epoch + 100_003 * (rank + 1))
    return DataLoader(data, batch, shuffle=True, generator=shuffle)


def no_set_epoch(data, rank, world_size, batch, seed, epoch):
    sampler = DistributedSampler(data, world_size, rank, seed=seed)
    return DataLoader(data, batch, sampler=sampler)


def double_sharded(data, rank, world_size, batch, seed, epoch):
    sampler = DistributedSampler(data, world_size, rank, seed=seed)
    sampler.set_epoch(epoch)
    share = list(sampler)
    share_of_share = share[rank::world_size]
    share_of_share += share[: _missing_for_equal_steps(len(share), rank, world_size, batch)]
    return DataLoader(Subset(data, share_of_share), batch)


def iterable_unsharded(data, rank, world_size, batch, seed, epoch, workers=0):
    return DataLoader(DigitStream(data, seed=seed + epoch), batch, **worker_options(workers))


def _missing_for_equal_steps(length: int, rank: int, world_size: int, batch: int) -> int:
    """How many samples rank `rank` lacks to take as many steps as rank 0, which has the most: real code would hang."""
    steps = math.ceil(math.ceil(length / world_size) / batch)
    return max(0, (steps - 1) * batch + 1 - len(range(rank, length, world_size)))


LOADERS: dict[str, Loader] = {
    "broken": broken,
    "overlapping": overlapping,
    "no-set-epoch": no_set_epoch,
    "double-sharded": double_sharded,
    "iterable-unsharded": iterable_unsharded,
    "uneven-shards": uneven_shards,
    "uneven-join": uneven_join,
    "split-by-node": split_by_node,
    "leaky-split": fixed,
    "fixed": fixed,
}


def shared_split(data: Dataset, val_share: float, seed: int, rank: int) -> tuple[Dataset, Dataset]:
    """Hold out the same validation samples on every rank."""
    split = torch.Generator().manual_seed(seed)
    return _split(data, val_share, split)


def leaky_split(data: Dataset, val_share: float, seed: int, rank: int) -> tuple[Dataset, Dataset]:
    """Hold out validation samples of each rank's own choosing."""
    split = torch.Generator().manual_seed(seed + 1 + rank)
    return _split(data, val_share, split)


def _split(data: Dataset, val_share: float, split: torch.Generator) -> tuple[Dataset, Dataset]:
    total = len(data)  # pyright: ignore[reportArgumentType]
    held_out = min(total - 1, round(val_share * total))
    training, validation = random_split(data, [total - held_out, held_out], generator=split)
    return (training, validation) if held_out else (data, validation)


@dataclass(frozen=True)
class Task(TaskFor[Config]):
    """What the ranks of one launch do."""

    loader: Loader
    split: Callable[..., tuple[Dataset, Dataset]]
    stand_for: int = 1
    """How many ranks a one-process reference stands for: it steps through their global batches."""


def plan(variant: str | Loader, config: Config, ranks: int) -> list[RunPlan]:
    """The variant's launch and its reference's.

    `broken` is compared with one rank alone and a batch of B: there is nothing else that it does. All others are
    compared with what they should have been: one process, a batch of W·B, over the sampler's own order and padding.
    `uneven-join` is compared with one process that adds the ranks' mean gradients, as many as are left, and divides by W.
    """
    loader = LOADERS[variant] if isinstance(variant, str) else variant
    split = leaky_split if variant == "leaky-split" else shared_split
    task = Task(config, loader, split)
    if variant == "broken":
        reference = Task(config, broken, shared_split)
    elif variant == "uneven-join":
        reference = Task(config, uneven_join, shared_split, stand_for=ranks)
    else:
        reference = Task(config, fixed, shared_split, stand_for=ranks)
    return [
        RunPlan(role=Role.VARIANT, program=train_on_ranks, task=task, ranks=ranks),
        RunPlan(role=Role.SINGLE, program=train_alone, task=reference, ranks=1, group=False),
    ]


def train_on_ranks(context: RankContext) -> None:
    """Train data-parallel. *Called on* every rank.

    Collectives: DDP's broadcast of the weights, then an all-reduce of the gradients each step.
    """
    task: Task = context.task
    training, validation = _data(context, context.rank)
    _declare(context, training)
    model = build(task.config.model, seed=context.seed, dtype=_dtype(task)).to(context.device)
    distributed = wrap_ddp(model, context.probe, context.device)

    def loader_of_epoch(epoch: int) -> Iterable:
        return _call(task, training, context.rank, context.world_size, context.seed, epoch)

    joined = task.loader is uneven_join
    _train(context, distributed, loader_of_epoch, validation, lambda: Join([distributed]) if joined else nullcontext())


def train_alone(context: RankContext) -> None:
    """Train on one process what `stand_for` ranks would train together. Called on one rank, without a group."""
    task: Task = context.task
    training, validation = _data(context, 0)
    _declare(context, training)
    model = build(task.config.model, seed=context.seed, dtype=_dtype(task)).to(context.device)

    if task.loader is uneven_join:
        config = task.config
        return train_as_if_joined(
            model,
            lambda epoch: [_call(task, training, r, task.stand_for, context.seed, epoch) for r in range(task.stand_for)],
            context.probe,
            torch.optim.SGD(model.parameters(), lr=config.lr, momentum=config.momentum),
            epochs=config.epochs,
            max_steps=config.steps or None,
            device=context.device,
        )

    def loader_of_epoch(epoch: int) -> Iterable:
        shares = [_call(task, training, rank, task.stand_for, context.seed, epoch) for rank in range(task.stand_for)]
        return shares[0] if task.stand_for == 1 else _global_batches(shares)

    _train(context, model, loader_of_epoch, validation)


def _global_batches(shares: list[Iterable]) -> Iterator[tuple[torch.Tensor, ...]]:
    for batches in zip(*shares, strict=True):
        yield tuple(torch.cat(parts) for parts in zip(*batches, strict=True))


def _call(task: Task, data: Dataset, rank: int, world_size: int, seed: int, epoch: int) -> Iterable:
    extra = {"workers": task.config.workers} if task.loader is iterable_unsharded else {}
    extra |= {"shards": task.config.shards} if task.loader in OF_FILES else {}
    return task.loader(data, rank, world_size, task.config.batch, seed, epoch, **extra)


def _data(context: RankContext, rank: int) -> tuple[Dataset, Dataset]:
    task: Task = context.task
    data = Digits(task.config.num_samples, _dtype(task))
    return task.split(data, task.config.val_share, context.seed, rank)


def _dtype(task: Task) -> torch.dtype:
    return torch.float64 if task.config.dtype == "float64" else torch.float32


def _declare(context: RankContext, training: Dataset) -> None:
    task: Task = context.task
    context.probe.declare(
        dataset_size=len(training),  # pyright: ignore[reportArgumentType]
        batch_size=task.config.batch * task.stand_for,
        workers=task.config.workers if task.loader is iterable_unsharded else 0,
        loader_where=where_written(task.loader),
        split_where=where_written(task.split),
    )


def _train(
    context: RankContext,
    model: Any,
    loader_of_epoch: Callable[[int], Iterable],
    validation: Dataset,
    around_epoch: Callable[[], AbstractContextManager] = nullcontext,
) -> None:
    config: Config = context.task.config
    steps = _count_steps(loader_of_epoch(0)) * config.epochs
    context.expect_steps(min(steps, config.steps) if config.steps else steps)

    def validate(epoch: int) -> None:
        held_out = len(validation)  # pyright: ignore[reportArgumentType]
        if held_out:
            images, _, ids = next(iter(DataLoader(validation, held_out)))
            context.probe.seen("validation", epoch, images, ids)

    train(
        model,
        loader_of_epoch,
        context.probe,
        epochs=config.epochs,
        lr=config.lr,
        momentum=config.momentum,
        max_steps=config.steps or None,
        device=context.device,
        after_epoch=validate,
        around_epoch=around_epoch,
    )
    keep_weights(model, context.probe)


def _count_steps(loader: Iterable) -> int:
    """Steps of one epoch, for the progress bar; 0 where a loader cannot say."""
    dataset = getattr(loader, "dataset", None)
    if isinstance(dataset, DigitStream) and isinstance(loader, DataLoader):
        workers, batch = max(1, loader.num_workers), loader.batch_size or 1
        return workers * math.ceil(len(dataset.digits) / batch)
    try:
        return len(loader)  # pyright: ignore[reportArgumentType]
    except TypeError:
        return 0
