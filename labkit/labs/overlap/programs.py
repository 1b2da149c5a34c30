"""The variants, and what the ranks of a launch do: train, compute alone in turn, communicate alone.

A variant is two functions: how the model is wrapped, and how the gradients of a step are made. They are all that differs.

Shapes: a step has `micro_batches` of (images [B, 64], labels [B]), where B is `batch` / `micro_batches`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel as DDP

from ...errors import UsageError
from ...ranks.context import RankContext
from ...record.probe import Probe
from ...record.roles import Role
from ...record.where import where_written
from ...theory.overlap_model import MIB, caps_to_try
from ...watch.ddp import watch_ddp
from ...watch.traffic import all_reduce_by_hand, tell_collectives, watch_collectives
from ...workloads.loop import keep_weights
from ..spec import RunPlan, TaskFor
from . import Config
from .workload import Batches, build_model, loss_of, micro_batches

ONE_A_PARAMETER = 1 / MIB
"""A cap of one byte: each gradient fills a bucket."""

COUNTED = 1
"""The step in which what is given to collectives is noted: the second, whose buckets stay as they are. It is not timed."""


# How the model is wrapped


def one_bucket(module, config):
    return DDP(module, bucket_cap_mb=1000)


def small_buckets(module, config):
    return DDP(module, bucket_cap_mb=config.bucket_mb)


def default_buckets(module, config):
    return DDP(module)


def a_bucket_for_each_parameter(module, config):
    return DDP(module, bucket_cap_mb=ONE_A_PARAMETER)


def looking_for_unused(module, config):
    return DDP(module, bucket_cap_mb=config.bucket_mb, find_unused_parameters=True)


# How the gradients of a step are made


def each_pass_reduces(model, batches, loss_of, average):
    for batch in batches:
        loss_of(model, batch).backward()


def after_backward(model, batches, loss_of, average):
    with model.no_sync():
        for batch in batches:
            loss_of(model, batch).backward()
    for parameter in model.parameters():
        average(parameter.grad)


def after_backward_in_one(model, batches, loss_of, average):
    with model.no_sync():
        for batch in batches:
            loss_of(model, batch).backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    average(flat)
    for gradient, mean in zip(gradients, flat.split([gradient.numel() for gradient in gradients]), strict=True):
        gradient.copy_(mean.view_as(gradient))


def last_pass_reduces(model, batches, loss_of, average):
    *first, last = batches
    with model.no_sync():
        for batch in first:
            loss_of(model, batch).backward()
    loss_of(model, last).backward()


def no_sync_around_backward_only(model, batches, loss_of, average):
    *first, last = batches
    for batch in first:
        loss = loss_of(model, batch)
        with model.no_sync():
            loss.backward()
    loss_of(model, last).backward()


def no_sync_around_all(model, batches, loss_of, average):
    with model.no_sync():
        for batch in batches:
            loss_of(model, batch).backward()


# What a bucket is sent as


def as_it_is(model):
    pass


def in_half_the_bytes(model):
    model.register_comm_hook(None, default_hooks.fp16_compress_hook)


@dataclass(frozen=True)
class Program:
    """A variant: how the model is wrapped, how the gradients of a step are made, and what a bucket is sent as."""

    wrap: Callable[..., DDP]
    gradients: Callable[..., None]
    send: Callable[[DDP], None] = as_it_is


PROGRAMS = {
    "broken": Program(one_bucket, each_pass_reduces),
    "serial": Program(one_bucket, after_backward),
    "flat": Program(one_bucket, after_backward_in_one),
    "ddp-default": Program(default_buckets, each_pass_reduces),
    "per-parameter": Program(a_bucket_for_each_parameter, each_pass_reduces),
    "bucket-sweep": Program(small_buckets, each_pass_reduces),
    "accumulate": Program(small_buckets, each_pass_reduces),
    "no-sync": Program(small_buckets, last_pass_reduces),
    "no-sync-backward-only": Program(small_buckets, no_sync_around_backward_only),
    "no-sync-around-all": Program(small_buckets, no_sync_around_all),
    "find-unused": Program(looking_for_unused, each_pass_reduces),
    "fp16-hook": Program(small_buckets, each_pass_reduces, in_half_the_bytes),
    "fixed": Program(small_buckets, each_pass_reduces),
}

SHOWN = {name: (program.wrap, program.gradients, program.send) for name, program in PROGRAMS.items()}
"""By variant: what a lesson shows of it."""


@dataclass(frozen=True)
class Task(TaskFor[Config]):
    """What the ranks of one launch do."""

    program: Program


def plan(variant: str | Callable[..., Any], config: Config, ranks: int) -> list[RunPlan]:
    """The variant's launch, and one of its link alone; computing alone is measured in turn with the variant's steps."""
    if callable(variant):
        raise UsageError(
            "this lab's exercise asks for a bucket size, which lab.check measures; to run with one of yours: "
            "lab.run('fixed', bucket_mb=2.0)"
        )
    if config.batch < config.micro_batches:
        raise UsageError(
            f"batch {config.batch} cannot be split into {config.micro_batches} micro-batches; give batch a value of at "
            "least micro_batches"
        )
    sweep_sizes(config)
    task = Task(config, PROGRAMS[variant])
    program = sweep if variant == "bucket-sweep" else train
    plans = [RunPlan(role=Role.VARIANT, program=program, task=task, ranks=ranks)]
    if config.parts_alone and ranks > 1:
        plans.append(RunPlan(role=Role.LINK, program=communicate_alone, task=task, ranks=ranks))
    return plans


def sweep_sizes(config: Config) -> list[float]:
    """The bucket sizes that were asked for, in MiB; empty where the lab chooses.

    Raises:
        UsageError: what is no list of sizes.
    """
    words = [word.strip() for word in config.sweep_mb.split(",") if word.strip()]
    try:
        sizes = [float(word) for word in words]
    except ValueError:
        sizes = [-1.0]
    if not all(0 <= size <= 1e5 for size in sizes):
        raise UsageError(f"sweep_mb must be sizes in MiB from 0 to 1e5, as in sweep_mb=0.5,1,2; given {config.sweep_mb!r}")
    return list(dict.fromkeys(sizes))


def train(context: RankContext) -> None:
    """Train data-parallel, watched. *Called on* every rank.

    Collectives: DDP's broadcast of the weights, then those of the variant in each step; a barrier after each step that
    computes alone.
    """
    task: Task = context.task
    config = task.config
    twin = Twin(context) if config.parts_alone else None
    model = task.program.wrap(build_model(config, context.seed).to(context.device), config)
    warm_up = min(2, config.steps - 1)
    watch = watch_ddp(model, context.probe)
    _declare(context, task, warm_up)
    task.program.send(model)  # a hook that is there before the watch could not be timed
    optimizer = torch.optim.SGD(model.parameters(), lr=config.lr)
    context.expect_steps(config.steps + (config.steps - warm_up if twin else 0))
    for number, batches in enumerate(micro_batches(config, context, config.steps)):
        with watch_collectives() if number == COUNTED < warm_up else nullcontext() as counter:
            _step(context, model, task.program.gradients, optimizer, batches)
        if counter is not None:
            tell_collectives(counter.seen, context.probe, lambda group: context.network.hosts if context.network else 1)
        if twin and number >= warm_up:
            twin.step(context, batches)
    watch.close()
    keep_weights(model, context.probe)


class Twin:
    """The same computing with nothing sent: an equal model whose every pass runs in no_sync.

    Its steps come in turn with those of the variant, so that whatever else the machine does meets both alike.
    """

    def __init__(self, context: RankContext) -> None:
        config = context.task.config
        self._model = DDP(build_model(config, context.seed).to(context.device))
        self._watch = watch_ddp(self._model, context.probe, parameters=True)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=config.lr)

    def step(self, context: RankContext, batches: Batches) -> None:
        """One step, which counts as `alone`; then ranks wait for each other, so that the next one begins on all at once."""
        _step(context, self._model, no_sync_around_all, self._optimizer, batches, alone=1)
        if context.world_size > 1:
            dist.barrier()


def _step(
    context: RankContext,
    model: Any,
    gradients: Callable,
    optimizer: Any,
    batches: Batches,
    *,
    alone: int = 0,
    cap: float | None = None,
) -> None:
    """One step, from its first forward pass to the optimizer's."""
    probe = context.probe

    def average(gradient: torch.Tensor) -> None:
        _average(probe, gradient, context.world_size)

    before = context.wire_bytes() if context.local_rank == 0 else None
    probe.begin_step()
    losses: list[torch.Tensor] = []
    gradients(model, batches, _keeping(losses, len(batches)), average)
    with probe.span("optimizer"):
        optimizer.step()
        optimizer.zero_grad()
    probe.count("updates")
    if alone:
        probe.count("alone")
    after = context.wire_bytes() if before else None
    if before and after:
        probe.count("wire_received_bytes", after[0] - before[0])
        probe.count("wire_sent_bytes", after[1] - before[1])
    probe.scalar("loss_local", torch.stack(losses).sum().item())
    probe.scalar("batch_samples", sum(len(labels) for _, labels in batches))
    if cap is not None:
        probe.scalar("cap_mib", cap)
    probe.end_step()


def _keeping(losses: list[torch.Tensor], count: int) -> Callable:
    """The loss of a micro-batch: its share of the step's, so that the gradients add up to the mean over all samples."""

    def loss(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        value = loss_of(model, batch) / count
        losses.append(value.detach())
        return value

    return loss


def _average(probe: Probe, gradient: torch.Tensor, world_size: int) -> None:
    """Average one gradient over the ranks, by hand and in the way of everything else."""
    gradient.div_(world_size)
    all_reduce_by_hand(gradient, probe)


def communicate_alone(context: RankContext) -> None:
    """The link alone: all-reduces of a part of the gradients and of all of them. *Called on* every rank.

    Collectives: for each size an all-reduce to warm up and then the repeats, a barrier before each.
    """
    task: Task = context.task
    total = sum(p.numel() for p in build_model(task.config, context.seed).parameters())
    messages = [torch.zeros(max(1, total // part), device=context.device) for part in (4096, 64, 16, 4, 1)]
    _declare(context, task, warm_up=0)
    context.expect_steps(len(messages) * (LINK_REPEATS + 1))
    for repeat in range(-1, LINK_REPEATS):
        for message in messages:
            dist.barrier()
            context.probe.begin_step()
            start = time.monotonic_ns()
            dist.all_reduce(message)
            seconds = (time.monotonic_ns() - start) / 1e9
            if repeat >= 0:
                context.probe.add_span("all_reduce", "comm", start, time.monotonic_ns())
                context.probe.scalar("seconds", seconds)
                context.probe.count("bytes", message.numel() * message.element_size())
            context.probe.end_step()


LINK_REPEATS = 3


def sweep(context: RankContext) -> None:
    """Train with one bucket size after the other, in turn, so that whatever else the machine does meets all alike.

    *Called on* every rank. Each size has a copy of the model of its own, which two steps of two samples warm up: DDP fixes
    its buckets in the second.

    Collectives: for each size DDP's broadcast and two reductions; then one reduction a step.
    """
    task: Task = context.task
    config = task.config
    total = sum(p.numel() * p.element_size() for p in build_model(config, context.seed).parameters())
    caps = sweep_sizes(config) or caps_to_try(total)
    twin = Twin(context) if config.parts_alone else None
    models = []
    for cap in caps:
        model = DDP(build_model(config, context.seed).to(context.device), bucket_cap_mb=cap or ONE_A_PARAMETER)
        watch = watch_ddp(model, context.probe)
        models.append((cap, model, watch, torch.optim.SGD(model.parameters(), lr=config.lr)))
    rounds = max(1, config.steps // 2)
    _declare(context, task, warm_up=2 * len(caps))
    context.expect_steps((2 + rounds) * len(caps) + (rounds if twin else 0))
    for _, model, _, _ in models:
        for (batch,) in micro_batches(config, context, 2, batch=2):
            loss_of(model, batch).backward()  # the watch makes it a step
    for batches in micro_batches(config, context, rounds):
        for cap, model, _, optimizer in models:
            _step(context, model, each_pass_reduces, optimizer, batches, cap=cap)
        if twin:
            twin.step(context, batches)
    for _, _, watch, _ in models:
        watch.close()


def _declare(context: RankContext, task: Task, warm_up: int) -> None:
    context.probe.declare(
        warm_up=warm_up,
        batch_size=task.config.batch,
        wrap_where=where_written(task.program.wrap),
        gradients_where=where_written(task.program.gradients),
    )
