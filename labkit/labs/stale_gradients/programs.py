"""The two ways to train on W ranks, and the runs that they are compared with.

A worker draws batches from its own share of the data and computes gradients. What differs between the variants is what
it does with a gradient: push it to the server and go on with what comes back, or wait for everybody's.

Shapes: images [B, 64], labels [B]; weights and gradients travel flat, [P] for a model of P parameters.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DistributedSampler

from ...ranks.context import RankContext
from ...record.roles import Role
from ...record.where import where_written
from ...theory.delay import stability_limit
from ...workloads.digits import Digits
from ...workloads.loop import keep_weights
from ...workloads.models import build
from ..spec import RunPlan, TaskFor
from . import VARIANTS, Config
from .curvature import Trail, sharpness_of_training
from .server import ParameterServer, RemoteServer, Service, flat, split_like

SAFETY = 0.8
"""Share of the stability limit that is taken where the theory picks the learning rate."""

SYNCHRONOUS = ("fixed", "sync-straggler")
"""Variants whose ranks wait for each other."""

LearningRate = Callable[[int, float], float]
"""(workers, sharpness) -> learning rate: what the exercise asks for."""


def asynchronous(worker, server):
    reply = server.pull(worker.rank)
    while not reply.stop:
        worker.take(reply.weights)
        gradient = worker.compute_gradient()
        reply = server.push(worker.rank, gradient)
        worker.pushed(reply.applied_at, reply.version)


def synchronous(worker, optimizer, steps):
    for step in range(steps):
        gradient = worker.compute_gradient()
        worker.average(gradient)
        worker.step(optimizer, gradient)
        worker.pushed(step, step + 1)


@dataclass(frozen=True)
class Task(TaskFor[Config]):
    """What the ranks of one launch do.

    Attributes:
        config: the lab's configuration.
        loop: `asynchronous` or `synchronous`.
        delay_for: workers whose delay decides a learning rate that theory picks.
        stand_for: how many ranks a one-process reference stands for.
        pick: the learner's function, in place of theory.
    """

    loop: Callable[..., None]
    delay_for: int
    stand_for: int = 1
    pick: LearningRate | None = None


def plan(variant: str | LearningRate, config: Config, ranks: int) -> list[RunPlan]:
    """The variant's launch, the run it is compared with, and the repeats.

    An asynchronous variant is compared with a synchronous run of equal settings and equally many samples, straggler and
    all; a synchronous one with a single process that takes the large batch.
    """
    waits = variant in SYNCHRONOUS
    delay_for = 1 if waits else ranks
    pick = variant if callable(variant) else None
    own = Task(config, synchronous if waits else asynchronous, delay_for, pick=pick)
    plans = [_plan(Role.VARIANT, own, ranks)]
    if config.compare == "yes" and waits:
        single = replace(own, config=replace(config, step_ms=0.0, straggler=1.0), stand_for=ranks)
        plans.append(_plan(Role.SINGLE, single, 1, group=False))
    elif config.compare == "yes":
        plans.append(_plan(Role.SYNC, replace(own, loop=synchronous), ranks))
    names = [Role.REPEAT if number == 0 else Role.REPEAT.numbered(number + 1) for number in range(config.repeats)]
    return [*plans, *(_plan(name, own, ranks) for name in names)]


def _plan(role: str, task: Task, ranks: int, group: bool = True) -> RunPlan:
    # one thread a rank: the server's and the workers' share cores, and threads of one product wait for each other
    return RunPlan(role=role, program=train, task=task, ranks=ranks, group=group, threads=1)


def train(context: RankContext) -> None:
    """Train, one way or the other. *Called on* every rank.

    Collectives: a broadcast of the learning rate where theory picks it; then an all-reduce each step (synchronous), or
    messages to and from rank 0 (asynchronous).
    """
    task: Task = context.task
    worker = Worker(context)
    lr = _learning_rate(context)
    optimizer = torch.optim.SGD(worker.model.parameters(), lr=lr, momentum=task.config.momentum)
    context.probe.declare(
        lr=lr,
        momentum=task.config.momentum,
        batch_size=task.config.batch * task.stand_for,
        dataset_size=task.config.num_samples,
        straggler=task.config.straggler,
        loop_where=where_written(task.loop),
    )
    if task.loop is synchronous:
        context.expect_steps(task.config.steps)
    else:  # a fast worker pushes more often than a slow one
        context.expect_steps(task.config.steps * context.world_size, together=True)
    if task.loop is synchronous:
        worker.trail = Trail(worker.model, task.config.steps) if context.rank == 0 else None
        synchronous(worker, optimizer, task.config.steps)
    else:
        _train_at_server(context, worker, optimizer)
    worker.finish()


def _train_at_server(context: RankContext, worker: Worker, optimizer: torch.optim.Optimizer) -> None:
    """Serve and work on rank 0, work on the others; rank 0's model ends with the server's weights."""
    config: Config = context.task.config
    # messages travel over gloo, whatever the gradients of a synchronous run would travel over
    group: Any = dist.new_group(backend="gloo") if context.backend == "nccl" else None
    if context.rank > 0:
        asynchronous(worker, RemoteServer(worker.vector(), group))
        return
    held = build("mlp", seed=context.seed, dtype=worker.dtype)
    worker.model, served = held, worker.model  # the optimizer has the latter: the worker computes on a copy
    worker.model.to(context.device)
    server = ParameterServer(
        served,
        optimizer,
        workers=context.world_size,
        total_pushes=config.steps * context.world_size,
        bound=config.bound,
        in_turn=config.serve == "in-turn",
    )
    service = Service(server, context.world_size, worker.vector(), group)
    asynchronous(worker, server)
    service.wait_until_done()
    worker.model = served


class Worker:
    """One rank's model, its batches, and the probe that sees what it does.

    Attributes:
        rank: its own.
        model: on which it computes.
        trail: keeps the weights along the way, or None.
    """

    def __init__(self, context: RankContext) -> None:
        task: Task = context.task
        self._context, self._config, self._stand_for = context, task.config, task.stand_for
        self.rank, self._world_size, self._probe = context.rank, context.world_size, context.probe
        self.dtype = torch.float64 if task.config.dtype == "float64" else torch.float32
        self.model = build("mlp", seed=context.seed, dtype=self.dtype).to(context.device)
        self.trail: Trail | None = None
        self._is_asynchronous = task.loop is asynchronous
        self._data = Digits(task.config.num_samples, self.dtype)
        shares = range(task.stand_for) if task.stand_for > 1 else [context.rank]
        world_size = max(task.stand_for, context.world_size)
        self._streams = [batches(self._data, rank, world_size, task.config.batch, context.seed) for rank in shares]
        slow = context.rank == context.world_size - 1
        self._times = task.config.straggler if slow else 1.0
        self._version = 0
        self._sent = 0

    def vector(self) -> torch.Tensor:
        """The weights, flat, as they are now."""
        return flat(list(self.model.parameters()))

    def take(self, weights: torch.Tensor) -> None:
        """Compute on these weights from now on."""
        parameters = list(self.model.parameters())
        with torch.no_grad():
            for parameter, part in zip(parameters, split_like(weights, parameters), strict=True):
                parameter.copy_(part)

    def compute_gradient(self) -> torch.Tensor:
        """The gradient of the next batch, flat; opens a step of the record. Takes as long as a device of its own would."""
        self._probe.begin_step()
        started = time.monotonic()
        ids = torch.cat([next(stream) for stream in self._streams])
        images, labels = self._data.images[ids], self._data.labels[ids]
        device = self._context.device
        with self._probe.span("forward"):
            loss = nn.functional.cross_entropy(self.model(images.to(device)), labels.to(device))
        with self._probe.span("backward"):
            self.model.zero_grad()
            loss.backward()
            gradient = flat([p.grad for p in self.model.parameters() if p.grad is not None])
        with self._probe.span("device"):
            elapsed = time.monotonic() - started
            time.sleep(max(0.0, self._times * max(self._config.step_ms / 1e3, elapsed) - elapsed))
        self._probe.scalar("loss_local", loss.item())
        self._probe.scalar("batch_samples", len(labels))
        self._sent = time.monotonic_ns()
        return gradient

    def average(self, gradient: torch.Tensor) -> None:
        """Replace a gradient with the mean of all ranks'. *Called on* every rank. Collectives: an all-reduce."""
        if self._world_size > 1:
            on_device = gradient.to(self._context.device)
            on_device.div_(self._world_size)
            dist.all_reduce(on_device)
            gradient.copy_(on_device)
        self._probe.add_span("all_reduce", "comm", self._sent, time.monotonic_ns())

    def step(self, optimizer: torch.optim.Optimizer, gradient: torch.Tensor) -> None:
        """Take the optimizer's step with a flat gradient."""
        if self.trail is not None:
            self.trail.keep()
        parameters = list(self.model.parameters())
        with self._probe.span("optimizer"):
            for parameter, part in zip(parameters, split_like(gradient, parameters), strict=True):
                parameter.grad = part
            optimizer.step()

    def pushed(self, applied_at: int, version: int) -> None:
        """Record on which version a gradient was computed and which it met; closes the step of the record."""
        self._probe.scalar("version_pulled", self._version)
        self._probe.scalar("version_pushed", applied_at)
        if self._is_asynchronous:
            self._probe.add_span("push", "comm", self._sent, time.monotonic_ns())
        self._probe.end_step()
        self._version = version

    def finish(self) -> None:
        """Record what became of it all: curvature on the way, loss on all data, the final weights."""
        if self.trail is not None:
            for at_step, value in self.trail.sharpness(self._data):
                self._probe.event("sharpness", at_step=at_step, value=value)
        if self.rank == 0:
            self._probe.event("evaluated", loss=_word(mean_loss(self.model, self._data, self._context.device)))
        if self.rank == 0 or not self._is_asynchronous:
            keep_weights(self.model, self._probe)


def batches(data: Digits, rank: int, world_size: int, batch: int, seed: int) -> Iterator[torch.Tensor]:
    """Batches of ids, without an end and all full: the rank's share epoch after epoch, each in a new order."""
    sampler = DistributedSampler(data, world_size, rank, seed=seed)
    ids: list[int] = []
    epoch = 0
    while True:
        while len(ids) < batch:
            sampler.set_epoch(epoch)
            ids += list(sampler)
            epoch += 1
        yield torch.tensor(ids[:batch])
        ids = ids[batch:]


def _learning_rate(context: RankContext) -> float:
    """What the configuration says, or what theory or the learner picks, which rank 0 finds and tells the others."""
    task: Task = context.task
    if task.config.lr and task.pick is None:
        return task.config.lr
    lr = torch.zeros(1, dtype=torch.float64)
    if context.rank == 0:
        data, seed = Digits(task.config.num_samples), context.seed
        workers = max(context.world_size, task.stand_for)
        pilot = [batches(data, rank, workers, task.config.batch, seed) for rank in range(workers)]
        sharpness = sharpness_of_training(build("mlp", seed=seed), data, pilot)
        context.probe.declare(sharpness=sharpness)
        lr[0] = _picked(task, sharpness)
    if context.world_size > 1:
        told = lr.to(context.device)
        dist.broadcast(told, 0)
        lr = told.cpu()
    return float(lr)


def _picked(task: Task, sharpness: float) -> float:
    if task.pick is None:
        return SAFETY * stability_limit(task.delay_for - 1, task.config.momentum) / sharpness
    return float(task.pick(task.delay_for, sharpness))


def mean_loss(model: nn.Module, data: Digits, device: torch.device) -> float:
    """The loss over all data."""
    with torch.no_grad():
        return nn.functional.cross_entropy(model(data.images.to(device)), data.labels.to(device)).item()


def _word(value: float) -> float | str:
    """JSON has no NaN and no infinity."""
    return value if value - value == 0 else repr(value)


SHOWN = {variant.name: synchronous if variant.name in SYNCHRONOUS else asynchronous for variant in VARIANTS}
"""By variant: the loop that a lesson shows."""
