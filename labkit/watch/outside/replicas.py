"""What each rank holds after an update: digests of weights and buffers, so that ranks can be compared without a collective.

Looked at after the first updates and then ever more seldom: 1, 2, 3, 4, 6, 8, 12, 16, … Large tensors are hashed by samples
of their bytes, at the same places on each rank. Sharded tensors are told by their type and not read.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import xxhash

from ...record.probe import Probe

WHOLE_BYTES = 2**16
"""Tensors up to this size are hashed whole; of larger ones so many bytes, spread evenly."""

_PARTS = 16


def is_looked_at(update: int) -> bool:
    """Whether an update is one after which replicas are compared: 1, 2, 3, and then each power of two and half way on."""
    power = 1 << (update.bit_length() - 1)
    return update == power or update * 2 == power * 3


class Replicas:
    """The models that the script trains, in the order of their first pass. *Called on* each rank; no collective is made."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._models: list[weakref.ref[Any]] = []

    def met(self, module: Any) -> None:
        """A module that no other called begins a pass of training."""
        if all(known() is not module for known in self._models):
            self._models.append(weakref.ref(module))

    @property
    def models(self) -> Iterator[Any]:
        """The models that are alive."""
        return (model for known in self._models if (model := known()) is not None)

    def updated(self, update: int) -> None:
        """The optimizers have made so many steps: look, if it is time."""
        if not is_looked_at(update):
            return
        for number, known in enumerate(self._models):
            module = known()
            if module is not None:
                self._probe.event("replica", update=update, model=number, **described(module))


def described(module: Any) -> dict[str, str | int | bool]:
    """What a rank holds of a model, as plain values.

    Returns:
        class: its name. shape: a hash of the names, shapes and types of its parameters. wrapped: whether it is a
        DistributedDataParallel module. sharded: whether parameters are parts of larger ones; then nothing is hashed.
        weights, buffers: hashes.
    """
    from torch.nn.parallel import DistributedDataParallel

    wrapped = isinstance(module, DistributedDataParallel)
    inner = module.module if wrapped else module
    parameters = list(inner.named_parameters())
    sharded = (
        any(_is_sharded(parameter) for _, parameter in parameters) or "FullyShardedDataParallel" in type(module).__name__
    )
    layout = "\n".join(f"{name} {tuple(p.shape)} {p.dtype} {p.requires_grad}" for name, p in parameters)
    said: dict[str, str | int | bool] = {
        "class": type(inner).__name__,
        "shape": xxhash.xxh3_64_hexdigest(layout.encode()),
        "wrapped": wrapped,
        "sharded": sharded,
    }
    if not sharded:
        said["weights"] = _hash([parameter for _, parameter in parameters])
        said["buffers"] = _hash([buffer for _, buffer in inner.named_buffers()])
    return said


def _is_sharded(tensor: Any) -> bool:
    return any(kind.__name__ in ("DTensor", "ShardedTensor", "FlatParameter") for kind in type(tensor).__mro__)


def _hash(tensors: list[Any]) -> str:
    state = xxhash.xxh3_64()
    for tensor in tensors:
        if tensor.device.type == "meta" or not tensor.numel():
            continue
        flat = tensor.detach().reshape(-1)
        if flat.numel() * flat.element_size() > WHOLE_BYTES:
            flat = _sampled(flat)
        state.update(_bytes(flat))
    return state.hexdigest()


def _sampled(flat: Any) -> Any:
    import torch

    each = WHOLE_BYTES // _PARTS // flat.element_size()
    starts = [at * (flat.numel() - each) // (_PARTS - 1) for at in range(_PARTS)]
    return torch.cat([flat[start : start + each] for start in starts])


def _bytes(flat: Any) -> Any:
    import torch

    return flat.contiguous().cpu().view(torch.uint8).numpy().data
