"""How state is divided among ranks: one function a strategy, and what each keeps, counted by its own rules.

A strategy takes a model and gives what a training loop needs. That is all that differs between the variants.

Shapes: FSDP2 divides a parameter [R, ...] by its rows: each of W ranks keeps [R/W, ...], rounded up and padded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ...watch import memory
from ...watch.memory import BUFFERS, GRADIENTS, PARAMETERS, STATE, sharded_parameters

COUNTERS, COUNTER_BYTES = "step_counters", 4
"""Adam counts the steps of each parameter that it keeps, in a float; part of its state."""


@dataclass
class Training:
    """A model that trains in some strategy.

    Attributes:
        model: to call with a batch.
        optimizer: whatever has step() and zero_grad().
        account: what is kept now, by category.
        own_account: what the implementation's own partition says it keeps after a backward pass, by category; and how
            much of the optimizer's state are its counters of steps.
        full_weights: the whole weights; makes collectives where they are sharded.
    """

    model: Any
    optimizer: Any
    account: memory.Account
    own_account: Callable[[], dict[str, int]]
    full_weights: Callable[[], list[torch.Tensor]]

    def backward(self, loss: torch.Tensor) -> None:
        loss.backward()

    def step(self) -> None:
        self.optimizer.step()

    def zero_grad(self) -> None:
        self.optimizer.zero_grad()


@dataclass(frozen=True)
class Place:
    """Where a strategy finds itself.

    Attributes:
        ranks: of the whole group.
        replicas: groups of HSDP.
        lr: of Adam.
        device: of this rank.
        settings: of one implementation alone.
    """

    ranks: int
    replicas: int
    lr: float
    device: torch.device
    settings: dict[str, Any] = field(default_factory=dict)


# ---- What the lesson shows


def alone(model, place):
    return model, torch.optim.Adam(model.parameters(), lr=place.lr)


def ddp(model, place):
    model = DistributedDataParallel(model, gradient_as_bucket_view=True)
    return model, torch.optim.Adam(model.parameters(), lr=place.lr)


def ddp_default(model, place):
    model = DistributedDataParallel(model)  # gradient_as_bucket_view=False: gradients are copied into buckets, and both stay
    return model, torch.optim.Adam(model.parameters(), lr=place.lr)


def zero1(model, place):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = DistributedDataParallel(model, gradient_as_bucket_view=True)
    return model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=place.lr)


def fsdp2_reshard(model, place):
    from torch.distributed.fsdp import fully_shard

    for block in model.blocks:
        fully_shard(block, reshard_after_forward=True)
    fully_shard(model, reshard_after_forward=True)
    return model, torch.optim.Adam(model.parameters(), lr=place.lr)


def fsdp2_no_reshard(model, place):
    from torch.distributed.fsdp import fully_shard

    for block in model.blocks:
        fully_shard(block, reshard_after_forward=False)
    fully_shard(model, reshard_after_forward=False)
    return model, torch.optim.Adam(model.parameters(), lr=place.lr)


def hsdp(model, place):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    shape = (place.replicas, place.ranks // place.replicas)
    mesh = init_device_mesh(place.device.type, shape, mesh_dim_names=("replicate", "shard"))
    for block in model.blocks:
        fully_shard(block, mesh=mesh, reshard_after_forward=True)
    fully_shard(model, mesh=mesh, reshard_after_forward=True)
    return model, torch.optim.Adam(model.parameters(), lr=place.lr)


TORCH: dict[str, Callable[[nn.Module, Place], tuple[nn.Module, Any]]] = {
    "ddp": ddp,
    "ddp-default": ddp_default,
    "zero1": zero1,
    "fsdp2-no-reshard": fsdp2_no_reshard,
    "fsdp2-reshard": fsdp2_reshard,
    "hsdp": hsdp,
}

DEEPSPEED = {"deepspeed-1": 1, "deepspeed-2": 2, "deepspeed-3": 3}
"""Strategy -> stage."""


def prepare(strategy: str, model: nn.Module, place: Place) -> Training:
    """Divide a model's state. *Called on* every rank; collectives: those of the wrapper."""
    if strategy in DEEPSPEED:
        from .deepspeed import prepare_deepspeed

        return prepare_deepspeed(DEEPSPEED[strategy], model, place)
    if strategy == "alone":
        return watched(*alone(model, place))
    return watched(*TORCH[strategy](model, place))


def watched(model: nn.Module, optimizer: Any) -> Training:
    """A model and its optimizer, with what torch's own wrappers say of their shares."""
    buckets = memory.watch_buckets(model) if isinstance(model, DistributedDataParallel) else {}
    plain = model.module if isinstance(model, DistributedDataParallel) else model
    return Training(
        model=model,
        optimizer=optimizer,
        account=memory.account_of(model, optimizer, buckets.values()),
        own_account=lambda: own_account(plain, optimizer, copied=not getattr(model, "gradient_as_bucket_view", True)),
        full_weights=lambda: full_weights(plain),
    )


def own_account(model: nn.Module, optimizer: Any, copied: bool = False) -> dict[str, int]:
    """Bytes after a backward pass by the partition that the implementation itself keeps, not by its tensors.

    Args:
        copied: DDP's buckets hold copies of the gradients.
    """
    sharded = sharded_parameters(model)
    if sharded:
        size = sharded[0].sharded_param.element_size()
        whole = sum(part.padded_sharded_param_size.numel() for part in sharded)
        real = [part.sharded_size.numel() for part in sharded]
        return {
            PARAMETERS: whole * size,
            GRADIENTS: whole * size,
            STATE: sum(2 * count * size + COUNTER_BYTES for count in real),
            BUFFERS: 0,
            COUNTERS: COUNTER_BYTES * len(real),
        }
    parameters = list(model.parameters())
    size, total = parameters[0].element_size(), sum(p.numel() for p in parameters)
    own = parameters
    if hasattr(optimizer, "_partition_parameters"):
        own = [p for group in optimizer._partition_parameters()[optimizer.rank] for p in group["params"]]
    return {
        PARAMETERS: total * size,
        GRADIENTS: total * size,
        STATE: sum(2 * p.numel() * size + COUNTER_BYTES for p in own),
        BUFFERS: total * size if copied else 0,
        COUNTERS: COUNTER_BYTES * len(own),
    }


def full_weights(model: nn.Module) -> list[torch.Tensor]:
    """The whole weights, detached. *Called on* every rank: gathers what is sharded."""
    gathered = []
    for parameter in model.parameters():
        whole = parameter.detach()
        gathered.append(whole.full_tensor() if hasattr(whole, "full_tensor") else whole.clone())  # pyright: ignore
    return gathered


def source(strategy: str) -> str:
    """The source of a strategy, as the lesson shows it."""
    if strategy in DEEPSPEED:
        from . import deepspeed

        return inspect.getsource(deepspeed.settings_of)
    return inspect.getsource(TORCH[strategy])
