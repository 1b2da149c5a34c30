"""Two programs that count bytes of one step, way by way: with several micro-batches, and with a policy of mixed precision.

Shapes: tokens and targets are [B, S], logits [B, S, V].
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from ...ranks.context import RankContext
from ...record.roles import Role
from ...watch.memory import GRADIENTS, UNSHARDED, bytes_alive
from ...watch.traffic import watch_collectives
from ..spec import RunPlan
from .programs import Task, _declare, batches, loss_of, model_of
from .strategies import TORCH, Place, Training, watched

WARM_UP = 2
"""Steps of each way before the one that is counted: optimizer states are made, and buckets laid out."""

MICRO_BATCHES = 4


@dataclass(frozen=True)
class Way:
    """How one step is made.

    Attributes:
        strategy: how state is divided.
        micro_batches: passes before the optimizer's step.
        last_alone: gradients are reduced in the last micro-batch alone.
        gathered, reduced: types in which weights are gathered and gradients reduced.
    """

    strategy: str
    micro_batches: int = 1
    last_alone: bool = False
    gathered: str = "float32"
    reduced: str = "float32"


ACCUMULATED = ("ddp", "zero1", "fsdp2-no-reshard", "fsdp2-reshard")
POLICIES = (("float32", "float32"), ("bfloat16", "float32"), ("bfloat16", "bfloat16"))


# ---- What the lesson shows


def accumulate(model, micro_batches, loss_of, last_alone):
    for number, batch in enumerate(micro_batches):
        reduces = number == len(micro_batches) - 1 or not last_alone
        if hasattr(model, "set_requires_gradient_sync"):  # FSDP2
            model.set_requires_gradient_sync(reduces)
        with model.no_sync() if hasattr(model, "no_sync") and not reduces else nullcontext():
            (loss_of(model, batch) / len(micro_batches)).backward()
        yield


def fsdp2_mixed(model, place, gathered, reduced):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = MixedPrecisionPolicy(param_dtype=gathered, reduce_dtype=reduced)
    for block in model.blocks:
        fully_shard(block, mp_policy=policy, reshard_after_forward=True)
    fully_shard(model, mp_policy=policy, reshard_after_forward=True)
    return model, torch.optim.Adam(model.parameters(), lr=place.lr)


# ---- The program around them


def count_ways(context: RankContext) -> None:
    """Count one step of each way after the other. *Called on* every rank. Collectives: those of the strategies."""
    task: Task = context.task
    ways = dict(task.settings)["ways"]
    _declare(context, model_of(context))
    context.expect_steps(len(ways) * (WARM_UP + 1))
    for way in ways:
        training = _prepared(context, way)
        stream = batches(context, context.world_size, context.rank)
        for _ in range(WARM_UP):
            context.probe.begin_step()
            for _ in _step(training, way, stream):
                pass
            context.probe.end_step()
        context.probe.begin_step()
        _counted_step(context, training, way, stream)
        context.probe.end_step()
        del training
        gc.collect()


def _prepared(context: RankContext, way: Way) -> Training:
    place = Place(context.world_size, 1, context.task.config.lr, context.device)
    if (way.gathered, way.reduced) == ("float32", "float32"):
        return watched(*TORCH[way.strategy](model_of(context), place))
    return watched(*fsdp2_mixed(model_of(context), place, getattr(torch, way.gathered), getattr(torch, way.reduced)))


def _step(training: Training, way: Way, stream: Iterator) -> Iterator[None]:
    """One step, which stops after each micro-batch for whoever looks."""
    micro = [next(stream) for _ in range(way.micro_batches)]
    yield from accumulate(training.model, micro, _loss_of_batch, way.last_alone)
    training.step()
    training.zero_grad()


def _loss_of_batch(model: Callable[..., Any], batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    tokens, targets = batch
    return loss_of(model(tokens), targets)


def _counted_step(context: RankContext, training: Training, way: Way, stream: Iterator) -> None:
    between = 0
    with watch_collectives() as counter:
        for number, _ in enumerate(_step(training, way, stream)):
            if number == 0 and way.micro_batches > 1:
                alive = bytes_alive(training.account())
                between = alive[GRADIENTS] + alive[UNSHARDED]  # of a sharded model: whole gradients, no weights
    of_weights = [one for one in counter.seen if one.kind in ("all_gather", "broadcast")]
    of_gradients = [one for one in counter.seen if one.kind in ("all_reduce", "reduce_scatter")]
    context.probe.event(
        "way_of_a_step",
        strategy=way.strategy,
        micro_batches=way.micro_batches,
        last_alone=way.last_alone,
        gathered_as=way.gathered,
        reduced_as=way.reduced,
        gathered_bytes=sum(one.num_bytes for one in of_weights),
        reduced_bytes=sum(one.num_bytes for one in of_gradients),
        sent_bytes=sum(one.sent_bytes for one in counter.seen),
        between_bytes=between,
    )


WAYS = {
    "accumulate": tuple(Way(name, MICRO_BATCHES, last_alone) for name in ACCUMULATED for last_alone in (False, True)),
    "mixed-precision": tuple(Way("fsdp2-reshard", gathered=one, reduced=other) for one, other in POLICIES),
}
"""By variant."""


def plan(variant: str, task: Task, ranks: int) -> list[RunPlan]:
    """The launch that counts. Bytes are what a program gives to collectives, so it needs no hosts and links."""
    counting = Task(**{**task.__dict__, "settings": (("ways", WAYS[variant]),)})
    return [RunPlan(role=Role.VARIANT, program=count_ways, task=counting, ranks=ranks, network=False)]


def source(variant: str) -> str:
    """The source of a variant, as the lesson shows it."""
    return inspect.getsource(accumulate if variant == "accumulate" else fsdp2_mixed)
