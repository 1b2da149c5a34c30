"""What the ranks do in test_checkpoint_on_ranks."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.distributed as dist

from labkit.errors import CheckpointError
from labkit.workloads.checkpoint import Checkpointer


def saves_and_restores(context):
    """Each rank its own state beside what all share, sync and in the background; what each reads back."""
    checkpoints = Checkpointer(Path(context.task))
    shared = {"weights": torch.arange(5.0), "step": 3}
    checkpoints.save(3, shared, {"rank": context.rank})
    checkpoints.save_in_background(4, {**shared, "step": 4}, {"rank": context.rank})
    checkpoints.wait()
    restored = checkpoints.restore()
    return restored.step, restored.shared["step"], restored.own, restored.world_size, checkpoints.steps()


def restores(context):
    restored = Checkpointer(Path(context.task)).restore()
    return restored.step, restored.own, restored.world_size


def calls_its_own_shared(context):
    try:
        Checkpointer(Path(context.task)).save(1, {"model": {"bias": torch.tensor(context.rank)}})
    except CheckpointError as error:
        return str(error)


def holds_what_is_not_data(context):
    """On rank 1 alone: the others must not wait for it."""
    try:
        Checkpointer(Path(context.task)).save(1, {}, {"f": print} if context.rank == 1 else {})
    except CheckpointError as error:
        return str(error)


def fills_the_disk(context):
    """A small checkpoint, then one that is too large, on the disk at `config`; then what is still there."""
    checkpoints = Checkpointer(Path(context.task))
    checkpoints.save(1, {"small": torch.ones(10)}, {"rank": context.rank})
    said = []
    for save in (checkpoints.save, lambda *a: (checkpoints.save_in_background(*a), checkpoints.wait())):
        try:
            save(2, {}, {"large": torch.ones(2_000_000 if context.rank == 1 else 1)})
        except CheckpointError as error:
            said.append(str(error))
    left = sorted(path.name for path in Path(context.task).iterdir())
    return said, left, checkpoints.restore().step


def writes_where_it_may_not(context):
    checkpoints = Checkpointer(Path(context.task))
    try:
        checkpoints.save(2, {}, {})
    except CheckpointError as error:
        return str(error), checkpoints.restore().step


def shards(context):
    """Save or restore weights and momentum that FSDP2 holds in shards; returns them whole."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor

    folder, saving = context.task
    torch.manual_seed(0 if saving else 1)
    model = torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.ones(2, 7)).sum().backward()
    optimizer.step()
    checkpoints = Checkpointer(Path(folder))

    def state():
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}

    if saving:
        checkpoints.save(1, state())
    else:
        restored = checkpoints.restore(like=state())
        model.load_state_dict(restored.shared["model"])
        optimizer.load_state_dict(restored.shared["optimizer"])
    held = [*model.parameters(), *(optimizer.state[p]["momentum_buffer"] for p in model.parameters())]
    assert all(isinstance(one, DTensor) for one in held)
    whole = [one.detach().full_tensor().tolist() for one in held]
    dist.barrier()
    return whole
