"""The programs of the lab: train in one strategy, count what is kept and what is sent; and three traps.

Shapes: tokens and targets are [B, S], logits [B, S, V]; whole weights are flat, [Ψ] for Ψ parameters.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from ...ranks.context import RankContext
from ...record.where import where_written
from ...watch.memory import MemoryWatch
from ...watch.optimizer import tell_known_parameters
from ...watch.passes import PassHooks, PassWatch
from ...watch.traffic import tell_collectives, watch_collectives
from ...workloads.gpt import GPT, GPTShape, build_gpt, token_loss
from ...workloads.text import text_loader
from ..spec import TaskFor
from . import Config
from .strategies import DEEPSPEED, TORCH, Place, Training, prepare

COUNTED = 2
"""The step whose memory and traffic are counted; those before it make optimizer states and lay buckets out."""

TIMED_FROM = COUNTED + 1
"""The first step of those whose time and wire bytes count: nothing is counted in them."""


FAST_STEPS = 6
"""Steps of each strategy that are timed on the fast link."""


@dataclass(frozen=True)
class Task(TaskFor[Config]):
    """What the ranks of one launch do.

    Attributes:
        strategy: how state is divided.
        stage: of ZeRO that it stands for, 0 for plain data parallelism, -1 for one process.
        room_bytes: memory of a device that the state has to fit into.
        stand_for: ranks that a one-process reference stands for.
        left_out: strategies that this record lacks, and why.
    """

    strategy: str
    stage: int
    replicas: int = 1
    room_bytes: int = 0
    stand_for: int = 1
    left_out: str = ""
    settings: tuple[tuple[str, Any], ...] = ()


def shape_of(config: Config) -> GPTShape:
    return GPTShape(layers=config.layers, hidden=config.hidden, heads=config.heads, seq=config.seq, vocab=config.vocab)


def dtype_of(config: Config) -> torch.dtype:
    return torch.float64 if config.dtype == "float64" else torch.float32


def model_of(context: RankContext, seed: int | None = None) -> GPT:
    """The model, with equal initial weights on every rank unless a seed of its own is given."""
    config = context.task.config
    model = build_gpt(shape_of(config), seed=context.seed if seed is None else seed, attention="sdpa", recompute=False)
    return model.to(context.device, dtype_of(config))


def batches(context: RankContext, ranks: int, rank: int | None) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Batches of text: those of one rank, or with rank None the global ones. The order is the same in every strategy."""
    config = context.task.config
    stream = text_loader(config.batch * ranks, config.seq, seed=context.seed)
    rows = slice(None) if rank is None else slice(rank * config.batch, (rank + 1) * config.batch)
    for tokens, targets in stream:
        yield tokens[rows].to(context.device), targets[rows].to(context.device)


def train(context: RankContext) -> None:
    """Train in one strategy. *Called on* every rank. Collectives: the strategy's, and barriers around timed steps."""
    task: Task = context.task
    model = model_of(context)
    alone = task.strategy == "alone"
    _declare(context, model)
    context.probe.digest("initial_weights", model.parameters())
    place = Place(context.world_size, task.replicas, task.config.lr, context.device, dict(task.settings))
    training = prepare(task.strategy, model, place)
    if task.strategy not in DEEPSPEED:  # whose optimizer holds flat copies
        tell_known_parameters(training.model, training.optimizer, context.probe)
    stream = batches(context, task.stand_for if alone else context.world_size, None if alone else context.rank)
    _loop(context, training, stream)
    if task.config.dtype == "float64":
        _keep_weights(context, training)


def time_strategies(context: RankContext) -> None:
    """Time the steps of several strategies, one after the other, in one launch. *Called on* every rank.

    Nothing is counted in these steps. Collectives: the strategies', and a barrier before each.
    """
    tasks: tuple[Task, ...] = context.task
    steps = min(tasks[0].config.steps, TIMED_FROM + FAST_STEPS)
    context.expect_steps(len(tasks) * steps)
    for task in tasks:
        context.task = task
        model = model_of(context)
        place = Place(context.world_size, task.replicas, task.config.lr, context.device, dict(task.settings))
        training = prepare(task.strategy, model, place)
        stream = batches(context, context.world_size, context.rank)
        dist.barrier()
        for number, (tokens, targets) in zip(range(steps), stream, strict=False):
            context.probe.begin_step()
            _step(context, training, tokens, targets)
            context.probe.count(task.strategy, number >= TIMED_FROM)
            context.probe.end_step()
        del model, training
        gc.collect()


def _declare(context: RankContext, model: GPT) -> None:
    task: Task = context.task
    parameters = list(model.parameters())
    context.probe.declare(
        wrap_where=where_written(TORCH.get(task.strategy)),
        strategy=task.strategy,
        stage=task.stage,
        replicas=task.replicas,
        num_parameters=sum(parameter.numel() for parameter in parameters),
        num_tensors=len(parameters),
        element_bytes=parameters[0].element_size(),
        batch_size=task.config.batch * task.stand_for,
        room_bytes=task.room_bytes,
        counted_step=COUNTED,
        timed_from=TIMED_FROM,
        left_out=task.left_out,
    )


def _loop(context: RankContext, training: Training, stream: Iterator) -> None:
    config: Config = context.task.config
    context.expect_steps(config.steps)
    wire = None
    for number, (tokens, targets) in zip(range(config.steps), stream, strict=False):
        if number == TIMED_FROM:
            wire = _wire(context)
        context.probe.begin_step()
        if number == COUNTED:
            loss = _counted_step(context, training, tokens, targets)
        else:
            loss = _step(context, training, tokens, targets)
        context.probe.scalar("loss_local", loss)
        context.probe.end_step()
    if wire is not None:
        _report_wire(context, wire, config.steps - TIMED_FROM)


def _step(context: RankContext, training: Training, tokens: torch.Tensor, targets: torch.Tensor) -> float:
    probe = context.probe
    with probe.span("forward"):
        loss = loss_of(training.model(tokens), targets)
    with probe.span("backward"):
        training.backward(loss)
    with probe.span("optimizer"):
        training.step()
        training.zero_grad()
    return loss.item()


def loss_of(logits_BSV: torch.Tensor, targets_BS: torch.Tensor) -> torch.Tensor:
    """The loss in float64, so that what is compared to the seventh digit is not rounded at the seventh."""
    return token_loss(logits_BSV.double(), targets_BS)


def _counted_step(context: RankContext, training: Training, tokens: torch.Tensor, targets: torch.Tensor) -> float:
    """A step in which what is kept is looked at at every instant, and every collective is noted."""
    kept = MemoryWatch(context.probe, training.account)
    passes = PassWatch(training.model, PassHooks(backward_begins=lambda: kept.look("backward_start")))
    kept.look("init")
    with watch_collectives(lambda given: kept.look(at_work=given)) as counter:
        logits = training.model(tokens)
        kept.look("forward")
        loss = loss_of(logits, targets)
        del logits
        training.backward(loss)
        kept.look("backward_end")
        context.probe.event("own_account", **training.own_account())
        training.step()
        kept.look("step")
    training.zero_grad()
    passes.close()
    kept.close()
    hosts = context.network.hosts if context.network else 1
    tell_collectives(counter.seen, context.probe, lambda group: _hosts_of(group, context.world_size, hosts))
    return loss.item()


def _hosts_of(group: tuple[int, ...], ranks: int, hosts: int) -> int:
    """On how many hosts a group's ranks sit: neighbours share one."""
    return len({rank * hosts // ranks for rank in group})


def _wire(context: RankContext) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """(link, within the host) counters of this host, while no rank sends; None where the host is none of its own."""
    if context.network is None or context.loopback_bytes() is None:
        return None
    dist.barrier()
    found = context.wire_bytes(), context.loopback_bytes()
    dist.barrier()
    assert found[0] is not None and found[1] is not None
    return found[0], found[1]


def _report_wire(context: RankContext, before: tuple[tuple[int, int], tuple[int, int]], steps: int) -> None:
    after = _wire(context)
    if after is not None and steps > 0:
        context.probe.event(
            "wire",
            steps=steps,
            wire_received_bytes=after[0][0] - before[0][0],
            wire_sent_bytes=after[0][1] - before[0][1],
            inside_bytes=after[1][1] - before[1][1],
        )


def _keep_weights(context: RankContext, training: Training) -> None:
    whole = torch.cat([weight.reshape(-1).double().cpu() for weight in training.full_weights()])
    context.probe.digest("weights", [whole])
    context.probe.array("weights", whole.numpy().astype(np.float64))
