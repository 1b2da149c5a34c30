"""Three traps of sharded training, as small runs: each raises no error.

Shapes: tokens and targets are [B, S], logits [B, S, V].
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
import torch.distributed as dist

from ...ranks.context import RankContext
from ...record.roles import Role
from ...record.where import where_written
from ...watch.memory import MemoryWatch, account_of
from ...watch.optimizer import tell_known_parameters
from ..spec import RunPlan
from .programs import Task, _declare, batches, loss_of, model_of
from .strategies import full_weights

MAX_NORM = 1.0


# ---- What the lesson shows


def optimizer_first(model, lr):
    from torch.distributed.fsdp import fully_shard

    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    return model, optimizer


def norm_of_shards(model):
    return torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)


def seeds_differ(context, build):
    from torch.distributed.fsdp import fully_shard

    model = build(seed=context.seed + context.rank)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    return model, before


# ---- The programs around them


def run_optimizer_first(context: RankContext) -> None:
    """Train with an optimizer that knows the model's old parameters alone. *Called on* every rank."""
    task: Task = context.task
    model = model_of(context)
    _declare_trap(context, model, optimizer_first)
    model, optimizer = optimizer_first(model, task.config.lr)
    _watch_optimizer(context, model, optimizer)


def _watch_optimizer(context: RankContext, model: Any, optimizer: Any) -> None:
    """Train, and note which parameters the optimizer knows and how far the weights moved."""
    before = full_weights(model)
    tell_known_parameters(model, optimizer, context.probe)
    kept = MemoryWatch(context.probe, account_of(model, optimizer))
    _train(context, model, optimizer)
    kept.look("step")
    moved = max(float((after - old).abs().max()) for after, old in zip(full_weights(model), before, strict=True))
    context.probe.event("weights_moved", largest=moved)


def run_norm_of_shards(context: RankContext) -> None:
    """Clip under FSDP1 by what each rank's shards say. *Called on* every rank."""
    from torch.distributed.fsdp import FullyShardedDataParallel

    task: Task = context.task
    model = model_of(context)
    _declare_trap(context, model, norm_of_shards)
    wrapped = FullyShardedDataParallel(model, device_id=context.device)
    _train(context, wrapped, torch.optim.SGD(wrapped.parameters(), lr=task.config.lr), norm_of_shards)


def _train(context: RankContext, model: Any, optimizer: Any, clip: Any = None) -> None:
    """The steps of a trap; with `clip`, gradients are clipped by it, and the norm that it gives is recorded."""
    task: Task = context.task
    context.expect_steps(task.config.steps)
    for _, (tokens, targets) in zip(
        range(task.config.steps), batches(context, context.world_size, context.rank), strict=False
    ):
        context.probe.begin_step()
        loss = loss_of(model(tokens), targets)
        loss.backward()
        if clip is not None:
            norm = clip(model)
            context.probe.scalar("grad_norm", float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm))
        optimizer.step()
        optimizer.zero_grad()
        model.zero_grad()  # an optimizer need not know the model's parameters: that is one of the traps
        context.probe.scalar("loss_local", loss.item())
        context.probe.end_step()


def run_seeds_differ(context: RankContext) -> None:
    """Shard weights that differ by rank. *Called on* every rank."""
    task: Task = context.task
    first = model_of(context)
    _declare_trap(context, first, seeds_differ)
    del first
    model, before = seeds_differ(context, lambda seed: model_of(context, seed))
    context.probe.digest("initial_weights", before)
    context.probe.digest("wrapped_weights", full_weights(model))
    optimizer = torch.optim.Adam(model.parameters(), lr=task.config.lr)
    _train(context, model, optimizer)


def _declare_trap(context: RankContext, model: Any, function: Any) -> None:
    _declare(context, model)
    context.probe.declare(wrap_where=where_written(function))
    dist.barrier()


PROGRAMS = {
    "optimizer-first": run_optimizer_first,
    "norm-of-shards": run_norm_of_shards,
    "seeds-differ": run_seeds_differ,
}

_SHOWN = {"optimizer-first": optimizer_first, "norm-of-shards": norm_of_shards, "seeds-differ": seeds_differ}


def plan(variant: str, task: Task, ranks: int) -> list[RunPlan]:
    """The launch of a trap. It is about what becomes of the weights, so it needs no hosts and links."""
    return [RunPlan(role=Role.VARIANT, program=PROGRAMS[variant], task=task, ranks=ranks, network=False)]


def source(variant: str) -> str:
    """The source of a trap, as the lesson shows it."""
    return inspect.getsource(_SHOWN[variant])
