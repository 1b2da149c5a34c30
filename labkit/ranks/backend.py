"""Which backend and device the ranks use: decided in one place, by a pure function, and shown."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ..errors import UnknownName, UsageError
from ..words import plural

DEVICES = ("cpu", "cuda")
BACKENDS = ("gloo", "nccl")


@dataclass(frozen=True)
class Placement:
    """Where the ranks of one machine run.

    Attributes:
        backend: "gloo" or "nccl".
        device: "cpu" or "cuda".
        num_gpus: GPUs of this machine that ranks are spread over (0 on CPU).
        reason: one sentence for the reader.
    """

    backend: str
    device: str
    num_gpus: int
    reason: str

    def device_of(self, local_rank: int) -> str:
        """The torch device of one rank."""
        return "cpu" if self.device == "cpu" else f"cuda:{local_rank % self.num_gpus}"


def choose(local_world_size: int, num_gpus: int, device: str | None = None, backend: str | None = None) -> Placement:
    """Choose backend and device for `local_world_size` ranks on a machine with `num_gpus` GPUs.

    NCCL wants a GPU for each rank. Where there are fewer, gloo carries CUDA tensors; without a GPU, CPU tensors.

    Raises:
        UnknownName, UsageError: an override that cannot be.
    """
    if device is not None and device not in DEVICES:
        raise UnknownName("device", device, DEVICES)
    if backend is not None and backend not in BACKENDS:
        raise UnknownName("backend", backend, BACKENDS)
    if device == "cuda" and num_gpus == 0:
        raise UsageError("device 'cuda' was asked for, but torch sees no GPU here; leave --device out, or give --device cpu")
    if backend == "nccl" and device == "cpu":
        raise UsageError("backend 'nccl' moves GPU tensors only; with --device cpu use --backend gloo")
    if backend == "nccl" and num_gpus < local_world_size:
        raise UsageError(
            f"backend 'nccl' needs a GPU for each rank: {plural(local_world_size, 'rank')}, {plural(num_gpus, 'GPU')}; "
            "use fewer ranks or --backend gloo"
        )
    if device == "cpu" or num_gpus == 0:
        why = "--device cpu" if device == "cpu" else "torch sees no GPU"
        return Placement("gloo", "cpu", 0, f"gloo over CPU tensors: {why}")
    if backend != "gloo" and num_gpus >= local_world_size:
        return Placement("nccl", "cuda", local_world_size, "NCCL: a GPU for each rank")
    shared = min(num_gpus, local_world_size)
    return Placement(
        "gloo", "cuda", shared, f"gloo over CUDA tensors: {plural(local_world_size, 'rank')} on {plural(shared, 'GPU')}"
    )


def visible_gpus() -> int:
    """How many GPUs torch sees. Makes no CUDA context."""
    import torch

    return torch.cuda.device_count()


def usable_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_per_rank(local_world_size: int) -> int:
    """Intra-op threads for each rank, so that all ranks together use the cores once."""
    return max(1, usable_cores() // local_world_size)
