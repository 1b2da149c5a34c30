"""What the ranks of this lab do, and which crash each launch plans."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from ...errors import UsageError
from ...ranks.context import RankContext
from ...ranks.faults import Fault
from ...record.roles import Role
from ...record.where import where_written
from ..spec import RunPlan, TaskFor
from . import Config
from .keepers import KEEPERS, Ablated, Full, Keeper, Nothing
from .training import Training


@dataclass(frozen=True)
class Task(TaskFor[Config]):
    """What the ranks of one launch do.

    Attributes:
        config: of the run.
        keeper: who keeps its state.
        training: the class that trains, the learner's own in the exercise.
        storage_of: the launch whose checkpoints this one uses; its own if empty.
        timeout_s: how long a collective of the first attempt waits for all ranks; 0 leaves it as torch sets it.
    """

    keeper: type[Keeper]
    training: type[Training] = Training
    storage_of: str = ""
    timeout_s: float = 0.0


def plan(variant: str | Callable[..., Any], config: Config, ranks: int) -> list[RunPlan]:
    """The variant with its crash, then the run that nothing interrupts; before them one that stops, if another number of
    ranks is to go on.

    Raises:
        UsageError: a crash that cannot happen, or batches that leave ranks without samples.
    """
    if min(config.global_batch, config.num_samples) < max(ranks, config.resume_ranks):
        raise UsageError(
            f"global_batch {config.global_batch} of {config.num_samples} samples leaves some of "
            f"{max(ranks, config.resume_ranks)} ranks without any; make it larger"
        )
    keeper, training = Full, variant
    if isinstance(variant, str):
        keeper, training = KEEPERS[variant], Training
        if config.leave_out != "nothing":
            if variant != "fixed":
                raise UsageError(f"leave_out is for the variant fixed, which restores all state; given {variant}")
            keeper = Ablated
    task = Task(config, keeper, training)  # pyright: ignore[reportArgumentType]
    # what a learner's class is held against is the lab's own training: a change to the training itself shows, too
    alone = dataclasses.replace(task, keeper=Nothing, training=Training)
    uninterrupted = RunPlan(role=Role.UNINTERRUPTED, program=train, task=alone, ranks=ranks)
    if config.resume_ranks:
        return [*_resharded(task, ranks), uninterrupted]
    faults = planned_faults(variant if isinstance(variant, str) else "fixed", config, ranks)
    hanging = dataclasses.replace(task, timeout_s=config.timeout_s if config.kill == "hang" else 0.0)
    crashing = RunPlan(
        role=Role.VARIANT, program=train, task=hanging, ranks=ranks, faults=faults, max_restarts=config.max_restarts
    )
    return [crashing, uninterrupted]


def _resharded(task: Task, ranks: int) -> list[RunPlan]:
    """A launch that stops at kill_step, and another, of another size, that goes on from its checkpoints."""
    config = task.config
    if not config.interval <= config.kill_step < config.total_steps:
        raise UsageError(
            f"resume_ranks needs a stop at kill_step, after a checkpoint: from interval {config.interval} to "
            f"{config.total_steps - 1}; given {config.kill_step}"
        )
    stopped = dataclasses.replace(task, config=dataclasses.replace(config, steps=config.kill_step))
    going_on = dataclasses.replace(task, storage_of=Role.BEFORE)
    return [
        RunPlan(role=Role.BEFORE, program=train, task=stopped, ranks=ranks),
        RunPlan(role=Role.VARIANT, program=train, task=going_on, ranks=config.resume_ranks),
    ]


def save_steps(variant: str, config: Config) -> list[int]:
    """Numbers of the steps after which a variant saves."""
    every = {"broken": [], "model-and-epoch": [config.steps_per_epoch], "light": [config.interval, config.light_interval]}
    return [
        step
        for step in range(config.total_steps)
        if any((step + 1) % period == 0 for period in every.get(variant, [config.interval]))
    ]


def planned_faults(variant: str, config: Config, ranks: int) -> tuple[Fault, ...]:
    """The crash that the configuration asks for.

    Raises:
        UsageError: it cannot happen.
    """
    if config.kill == "none":
        return ()
    step, rank = config.kill_step, config.kill_rank
    if rank >= ranks:
        raise UsageError(f"kill_rank is {rank}, but ranks count from 0 to {ranks - 1}; give one of them")
    if step >= config.total_steps:
        raise UsageError(
            f"kill_step is {step}, but steps count from 0 to {config.total_steps - 1}; give one of them, or kill=none"
        )
    match config.kill:
        case "all":
            return tuple(Fault(kind="kill", rank=each, step=step) for each in range(ranks))
        case "node":
            return (Fault(kind="lose-node", rank=rank, step=step),)
        case "hang":
            return (Fault(kind="hang", rank=rank, step=step),)
        case "save":
            if not any(saving >= step for saving in save_steps(variant, config)):
                raise UsageError(f"{variant} saves nothing from step {step} on, so no save can be hit; kill a rank instead")
            by = 0 if variant == "model-and-epoch" else rank  # there, rank 0 alone saves
            return (Fault(kind="kill", rank=by, step=step, at="save"),)
    return (Fault(kind="kill", rank=rank, step=step),)


def raise_after(seconds: float) -> None:
    """Let a collective raise if it has waited so long for the other ranks. *Called on* every rank, in the group.

    A script gives the same to `init_process_group(timeout=…)`; here the group was made by the launcher.
    """
    dist.distributed_c10d._set_pg_timeout(timedelta(seconds=seconds))


def train(context: RankContext) -> None:
    """Train, keep, and go on after a crash. *Called on* every rank, in every attempt."""
    task: Task = context.task
    folder = context.folder.parent / task.storage_of if task.storage_of else context.folder
    storage = folder / "storage"
    storage.mkdir(exist_ok=True)
    if task.timeout_s and context.attempt == 0:
        raise_after(task.timeout_s)
    training = task.training(context, task.config)
    keeper = task.keeper(context, training, storage)
    context.probe.declare(
        dataset_size=task.config.num_samples,
        global_batch=task.config.global_batch,
        mtbf_s=task.config.mtbf_s,
        rank_draws=task.config.augment or task.config.dropout > 0,
        keeper_where=where_written(task.keeper),
    )
    training.run(keeper)
    if context.local_disk.exists():
        shutil.rmtree(context.local_disk)
