"""The loaders of each variant, and the program that trains with one of them.

A loader function answers: how do the prepared batches of rank `rank` come to its device? It is all that differs between
the variants, and what the exercise asks for.

Shapes: a batch is (images [B, 64] in 0..1, labels [B], ids [B]). B is `batch`, and less where an epoch ends.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler

from ...errors import UsageError
from ...ranks.context import RankContext, worker_options
from ...record.roles import Role
from ...record.where import where_written
from ...workloads.digits import Digits
from ...workloads.loop import keep_weights, train, wrap_ddp
from ...workloads.models import build
from ...workloads.scans import (
    Counted,
    DiskCache,
    FileLock,
    Locked,
    Remote,
    Scans,
    all_scans,
    scan_bytes,
    sleep_until,
)
from ..spec import DataStore, RunPlan, TaskFor
from . import Config

Loader = Callable[..., Iterable]

DUMMY_STEPS = 16
"""Enough to know the rate of a step that waits for nothing."""


def broken(data, rank, world_size, batch, seed):
    sampler = DistributedSampler(data, world_size, rank, seed=seed)
    return DataLoader(data, batch, sampler=sampler)


def workers(data, rank, world_size, batch, seed, workers=2, prefetch=2):
    sampler = DistributedSampler(data, world_size, rank, seed=seed)
    ahead = {**worker_options(workers), "prefetch_factor": prefetch, "persistent_workers": True}
    return DataLoader(data, batch, sampler=sampler, **ahead)


def cached(data, rank, world_size, batch, seed):
    sampler = DistributedSampler(data, world_size, rank, seed=seed)
    return DataLoader(DiskCache(data), batch, sampler=sampler)


def fixed(data, rank, world_size, batch, seed, workers=2, prefetch=2):
    sampler = DistributedSampler(data, world_size, rank, seed=seed)
    ahead = {**worker_options(workers), "prefetch_factor": prefetch, "persistent_workers": True}
    return DataLoader(DiskCache(data), batch, sampler=sampler, **ahead)


def locked(data, rank, world_size, batch, seed):
    sampler = DistributedSampler(data, world_size, rank, seed=seed)
    one_at_a_time = FileLock(data.local / "lock")  # one file: all processes of this host meet in it
    return DataLoader(Locked(data, one_at_a_time), batch, sampler=sampler)


def thread_locked(data, rank, world_size, batch, seed):
    sampler = DistributedSampler(data, world_size, rank, seed=seed)
    one_at_a_time = threading.Lock()  # an object of this process: no other rank ever sees it
    return DataLoader(Locked(data, one_at_a_time), batch, sampler=sampler)


LOADERS: dict[str, Loader] = {
    "broken": broken,
    "workers": workers,
    "cached": cached,
    "locked": locked,
    "thread-locked": thread_locked,
    "shared-store": broken,
    "shared-store-cached": cached,
    "workers-in-memory": workers,
    "dummy": broken,
    "fixed": fixed,
}
WITHOUT_WORKERS: dict[Loader, Loader] = {workers: broken, fixed: cached}


STORE_BYTES = 10**9
"""At most so much does a store hold: it is drawn in memory, then served from there."""


@dataclass(frozen=True)
class Task(TaskFor[Config]):
    """What the ranks of one launch do.

    Attributes:
        dummy: whether to train on one ready batch again and again.
    """

    loader: Loader
    dummy: bool = False


def plan(variant: str | Loader, config: Config, ranks: int) -> list[RunPlan]:
    """The variant's launch and those that it is compared with.

    `dummy` is the same without input. `alone` is one rank that reads its share while no other reads. `inline` is the same
    without workers.
    """
    loader = LOADERS[variant] if isinstance(variant, str) else variant
    if config.source == "memory" and loader not in (broken, workers):
        raise UsageError(
            "source=memory holds prepared samples: there is nothing to cache or to lock; it goes with the variants broken, "
            "workers and workers-in-memory"
        )
    task = Task(config, loader, dummy=variant == "dummy")
    store = _store(config)
    train_all = partial(RunPlan, program=train_on_ranks, data_store=store)
    plans = [train_all(role=Role.VARIANT, task=task, ranks=ranks)]
    every = config.compare == "all"
    if config.compare == "nothing":
        return plans
    shared = variant in ("locked", "thread-locked") or config.source == "store"
    if not task.dummy and (every or not shared):
        short = replace(config, steps=min(config.steps or DUMMY_STEPS, DUMMY_STEPS))
        plans.append(train_all(role=Role.DUMMY, task=Task(short, loader, dummy=True), ranks=ranks))
    if ranks > 1 and (every or shared):
        own = replace(config, num_samples=max(2, math.ceil(config.num_samples / ranks)))
        plans.append(train_all(role=Role.ALONE, task=Task(own, loader, task.dummy), ranks=1, group=False))
    if loader in WITHOUT_WORKERS and (every or variant in ("workers", "workers-in-memory")):
        plans.append(train_all(role=Role.INLINE, task=Task(config, WITHOUT_WORKERS[loader]), ranks=ranks))
    return plans


def _store(config: Config) -> DataStore | None:
    if config.source != "store":
        return None
    held = config.num_samples * scan_bytes(config.scan)
    if held > STORE_BYTES:
        raise UsageError(
            f"the store would hold {held / 1e9:.3g} GB, {config.num_samples} scans of scan={config.scan}, and at most "
            f"{STORE_BYTES / 1e9:g} GB are served from memory; give a smaller scan, or fewer num_samples"
        )
    return DataStore(
        rate_bits_per_s=config.store_mbit * 1e6,
        items=partial(all_scans, config.num_samples, config.scan),
        item_bytes=scan_bytes(config.scan),
        emulate=config.emulate_store,
    )


def train_on_ranks(context: RankContext) -> None:
    """Train on what the loader gives. *Called on* every rank.

    Collectives: DDP's broadcast of the weights, then an all-reduce of the gradients each step, if the ranks meet.
    """
    task: Task = context.task
    config, probe = task.config, context.probe
    data = _data(context)
    loader: Any = _called(context, data)
    steps = _steps(loader)
    _declare(context, loader, data)
    context.expect_steps(min(steps * config.epochs, config.steps) if config.steps else steps * config.epochs)
    if task.dummy:
        loader = list(itertools.repeat(next(iter(loader)), steps or DUMMY_STEPS))
    model: nn.Module = Paced(build("mlp", seed=context.seed), config.compute_ms / 1e3).to(context.device)
    if config.meet and context.backend != "none":
        model = wrap_ddp(model, probe, context.device)
    counted = Counted(loader, data.counters, probe.count) if isinstance(data, Scans) else loader

    def loader_of_epoch(epoch: int) -> Iterable:
        hear_of = getattr(getattr(loader, "sampler", None), "set_epoch", None)
        if hear_of is not None:
            hear_of(epoch)
        return counted

    train(
        model,
        loader_of_epoch,
        probe,
        epochs=config.epochs,
        lr=config.lr,
        max_steps=config.steps or None,
        device=context.device,
    )
    keep_weights(model, probe)


class Paced(nn.Module):
    """A model whose forward pass takes a given time at the least, as if the whole step ran on a device of its own."""

    def __init__(self, model: nn.Module, seconds: float) -> None:
        super().__init__()
        self.model, self.seconds = model, seconds

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        began = time.monotonic()
        outputs = self.model(inputs)
        sleep_until(began + self.seconds)
        return outputs


def _data(context: RankContext) -> Scans | Digits:
    config: Config = context.task.config
    digits = Digits(config.num_samples)
    if config.source == "memory":
        return digits
    local = context.folder / f"disk-of-{context.host}"  # shared by the ranks of a host, gone with the record
    local.mkdir(exist_ok=True)
    read = None
    if config.source == "store":
        assert context.data_store is not None
        read = Remote(context.data_store, math.isqrt(context.data_store.item_bytes))
    return Scans(
        digits,
        scale=config.scan,
        prepare_s=config.prep_ms / 1e3 / config.batch,
        by=config.prep,
        read=read,
        local=local,
        mark=lambda name: context.probe.span(name, "data"),
    )


def _called(context: RankContext, data: Any) -> Iterable:
    task: Task = context.task
    extra = {}
    if task.loader in WITHOUT_WORKERS:
        extra = {"workers": task.config.workers, "prefetch": task.config.prefetch}
    return task.loader(data, context.rank, context.world_size, task.config.batch, context.seed, **extra)


def _declare(context: RankContext, loader: Any, data: Any) -> None:
    task: Task = context.task
    config = task.config
    context.probe.declare(
        dataset_size=len(data),
        batch_size=config.batch,
        workers=0 if task.dummy else int(getattr(loader, "num_workers", 0)),
        meets=config.meet and context.backend != "none",
        source=config.source,
        loader_where=where_written(task.loader),
    )


def _steps(loader: Any) -> int:
    """Steps of one epoch; 0 where a loader cannot say."""
    try:
        return len(loader)
    except TypeError:
        return 0
