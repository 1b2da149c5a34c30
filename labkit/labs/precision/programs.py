"""What the process of a launch does: train one loop under watch, then measure its speed beside fp32's, without it.

Shapes: a batch is (inputs, targets, ids [B]): of digits [B, 64] and [B], of text [B, S] and [B, S].
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import DataLoader

from ...errors import UsageError
from ...ranks.context import RankContext
from ...record.roles import Role
from ...record.where import where_written
from ...workloads.digits import Digits
from ...workloads.loop import keep_weights
from ...workloads.models import build
from ..spec import RunPlan, TaskFor
from . import Config
from .loops import IN_FP16, LOOPS, Loop
from .watch import Watch

TEXT_LENGTH = 64
TEXT_BATCHES = 28


@dataclass(frozen=True)
class Task(TaskFor[Config]):
    """What one launch does.

    Attributes:
        name: the variant's, or that of a learner's function.
        loop: trains.
        timed: whether its speed is measured too.
    """

    name: str
    loop: Loop
    timed: bool


def plan(variant: str | Loop, config: Config, ranks: int) -> list[RunPlan]:
    """The variant's launch, then the reference's: fp32 with the same batches, initial weights and settings.

    Raises:
        UsageError: several ranks; a variant that this machine cannot run, or could not in a sensible time.
    """
    if ranks != 1:
        raise UsageError(
            f"precision studies one process; given {ranks} ranks; give --ranks 1 or leave it out (each of several ranks "
            "would show the same; lab 03 and later ones study several)"
        )
    name, loop = (variant, LOOPS[variant]) if isinstance(variant, str) else ("yours", variant)
    refuse(name, config.model, "cuda" if torch.cuda.device_count() else "cpu")
    reference = Task(config, "fp32", LOOPS["fp32"], timed=False)
    how: dict[str, Any] = {"program": run, "ranks": 1, "group": False, "threads": config.threads}
    return [
        RunPlan(role=Role.VARIANT, task=Task(config, name, loop, timed=True), **how),
        RunPlan(role=Role.REFERENCE, task=reference, **how),
    ]


def refuse(name: str, model: str, device: str) -> None:
    """Refuse what a kind of device cannot do.

    Raises:
        UsageError: with what to run instead.
    """
    if name == "tf32" and device != "cuda":
        raise UsageError(
            "tf32 is a mode of a GPU's matrix units, and this run would be on a CPU; run fp32 or bf16-autocast here, "
            "or tf32 on a machine with a GPU"
        )
    if name in IN_FP16 and model == "gpt" and device != "cuda":
        raise UsageError(
            f"{name} with model=gpt computes in fp16, which takes some 40 times as long as fp32 on a CPU; "
            "use model=mlp or cnn, a bf16 variant, or a GPU"
        )


def run(context: RankContext) -> None:
    """Train with the task's loop under watch; then time it, if so asked. Called on one rank, without a group."""
    task: Task = context.task
    config, device = task.config, context.device
    refuse(task.name, config.model, device.type)
    _fp32_means_fp32(device)
    model = build_model(config, context.seed).to(device)
    optimizer = build_optimizer(model, config)
    _declare(context)
    scaler = torch.amp.GradScaler(  # pyright: ignore[reportPrivateImportUsage]
        device.type, init_scale=config.init_scale, growth_interval=config.growth_interval
    )
    watch = Watch(context.probe, model, optimizer, scaler)
    context.expect_steps(num_steps(config))
    context.probe.digest("initial_weights", model.parameters())
    returned = task.loop(model, optimizer, scaler, _all_batches(watch, config, context), device.type, config)
    if returned is not None:
        context.probe.event("loop_returned", kind=type(returned).__name__)
    watch.close()
    keep_weights(model, context.probe)
    if task.timed and config.repeats:
        measure_speed(context)


def build_model(config: Config, seed: int) -> torch.nn.Module:
    """The model, in fp32; its initial weights depend on the seed alone."""
    if config.model != "gpt":
        return build(config.model, seed=seed)
    from ...workloads.gpt import GPTShape, build_gpt

    shape = GPTShape(layers=2, hidden=64, heads=4, seq=TEXT_LENGTH)
    return build_gpt(shape, seed=seed, attention="naive", recompute=False)


def build_optimizer(model: torch.nn.Module, config: Config) -> torch.optim.Optimizer:
    """The optimizer that the configuration names."""
    if config.optimizer == "sgd":
        return torch.optim.SGD(model.parameters(), lr=config.lr)
    return torch.optim.Adam(model.parameters(), lr=config.lr, eps=config.eps)


def num_steps(config: Config) -> int:
    """Steps of the whole run."""
    an_epoch = TEXT_BATCHES if config.model == "gpt" else -(-len(Digits()) // config.batch)
    whole = an_epoch * config.epochs
    return min(whole, config.steps) if config.steps else whole


def loader_of(config: Config, seed: int, epoch: int) -> Iterable:
    """The batches of an epoch, each (inputs, targets, ids): the same for every loop."""
    if config.fixed_batch:
        first = next(iter(_shuffled(config, seed, 0)))
        length = TEXT_BATCHES if config.model == "gpt" else -(-len(Digits()) // config.batch)
        return [first] * length
    return _shuffled(config, seed, epoch)


def _shuffled(config: Config, seed: int, epoch: int) -> Iterable:
    if config.model == "gpt":
        from ...workloads.text import Windows

        windows = itertools.islice(Windows(config.batch, TEXT_LENGTH, seed=seed + 100_003 * epoch), TEXT_BATCHES)
        return [(*window, torch.arange(config.batch) + config.batch * at) for at, window in enumerate(windows)]
    order = torch.Generator().manual_seed(seed + epoch)
    return DataLoader(Digits(), config.batch, shuffle=True, generator=order)


def _all_batches(watch: Watch, config: Config, context: RankContext) -> Iterator:
    steps = num_steps(config)
    for epoch in range(config.epochs):
        if context.probe.step + 1 >= steps:
            return
        yield from watch.batches(loader_of(config, context.seed, epoch), epoch, steps, context.device)


def measure_speed(context: RankContext) -> None:
    """Time the loop and fp32's in turn, `repeats` times `timed_steps` steps each, after a warm-up of both.

    In turn, and each first as often as second, so that whatever else the machine does meets both alike; without the
    watch, on batches that are ready.
    """
    task: Task = context.task
    config, device = task.config, context.device
    found = itertools.islice(itertools.cycle(loader_of(config, context.seed, 0)), config.timed_steps)
    ready = [(inputs.to(device), targets.to(device)) for inputs, targets, _ in found]
    loops = {"variant": task.loop, "fp32": LOOPS["fp32"]}
    parts = {}
    for name in loops:
        model = build_model(config, context.seed).to(device)
        scaler = torch.amp.GradScaler(  # pyright: ignore[reportPrivateImportUsage]
            device.type, init_scale=config.init_scale, growth_interval=config.growth_interval
        )
        parts[name] = (model, build_optimizer(model, config), scaler)
    for repeat in range(-1, config.repeats):
        for name in loops if repeat % 2 else reversed(loops):
            _wait_for(device)
            start = time.perf_counter_ns()
            loops[name](*parts[name], iter(ready), device.type, config)
            _wait_for(device)
            if repeat >= 0:
                elapsed = time.perf_counter_ns() - start
                context.probe.event("timed", loop=name, repeat=repeat, steps=len(ready), elapsed_ns=elapsed)


def _wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _fp32_means_fp32(device: torch.device) -> None:
    """Convolutions on a GPU use tf32 by default; here fp32 is fp32, and tf32 a variant of its own."""
    if device.type == "cuda":
        torch.backends.cudnn.allow_tf32 = False


def _declare(context: RankContext) -> None:
    task: Task = context.task
    config = task.config
    facts: dict[str, Any] = {"clip_norm": config.clip_norm} if config.clip_norm else {}
    context.probe.declare(
        loop_where=where_written(task.loop),
        precision=task.name,
        batch_size=config.batch,
        growth_interval=config.growth_interval,
        **facts,
    )
