"""Wrappers that shard a model, FullyShardedDataParallel and fully_shard: what they are given, and how gradients are clipped.

Only the local part of a sharded tensor is read, and of a plain one only what is there.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import xxhash

from ...record.probe import Probe
from . import digests
from .patches import Patches, called_from
from .replicas import is_looked_at

_FSDP2 = "torch.distributed.fsdp._fully_shard._fully_shard"
_FSDP1 = "torch.distributed.fsdp.fully_sharded_data_parallel"


ALIKE = 1e-3
"""Rest, as a share of the gradients, that a scaling by one factor leaves at most."""

TENSORS = 16
"""Gradients that are sampled."""


class Sharding:
    """Models that are sharded. *Called on* each rank; no collective is made.

    Args:
        probe: this rank's.
        models: the modules that the script trains, as they are known by now.
    """

    def __init__(self, probe: Probe, models: Callable[[], Iterable[Any]]) -> None:
        self._probe, self._models = probe, models
        self._number, self._updates = 0, 0
        self._parts: list[tuple[weakref.ref[Any], str]] = []
        self._after_backward: Any = None
        self.any = False

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        import torch

        sampling = patches.sampling
        before, after, clipped = (patches.noting(note) for note in (self._before, self._after, self._clipped))

        def shard(original):
            def fully_shard(module, *args, **kwargs):
                where = called_from()
                before(module, "fully_shard", False, where)
                given = original(module, *args, **kwargs)
                after(module)
                return given

            return fully_shard

        def wrapper(original):
            def __init__(fsdp, module, *args, **kwargs):
                before(module, "FullyShardedDataParallel", bool(kwargs.get("sync_module_states")), called_from())
                original(fsdp, module, *args, **kwargs)
                after(fsdp)

            return __init__

        def clip(original):
            def clip_grad_norm_(parameters, *args, **kwargs):
                given = original(parameters, *args, **kwargs)
                if not sampling.in_burst:
                    return given
                clipped(given, called_from())
                return given

            return clip_grad_norm_

        patches.when_imported(_FSDP2, lambda module: patches.wrap_everywhere(module, "fully_shard", shard))
        patches.when_imported(_FSDP1, lambda module: patches.wrap(module.FullyShardedDataParallel, "__init__", wrapper))
        patches.wrap_everywhere(torch.nn.utils.clip_grad, "clip_grad_norm_", clip)

    def _before(self, module: Any, kind: str, synced: bool, where: str) -> None:
        modules = module if isinstance(module, (list, tuple)) else [module]
        plain = [p for one in modules for p in one.parameters() if digests.is_readable(p)]
        each = " ".join(digests.token(parameter) for parameter in plain[: digests.MOST])
        self._probe.event(
            "sharding",
            number=self._number,
            wrapper=kind,
            tensors=len(plain),
            weights=xxhash.xxh3_64_hexdigest(each.encode()) if plain else "",
            synced=synced,
            where=where,
        )
        self._number += 1
        self.any = True

    def _after(self, module: Any) -> None:
        modules = module if isinstance(module, (list, tuple)) else [module]
        for one in modules:
            for parameter in one.parameters():
                local = _local(parameter)
                if local is not None and all(known() is not parameter for known, _ in self._parts):
                    self._parts.append((weakref.ref(parameter), digests.token(local)))

    def met(self, module: Any, number: int) -> None:
        """A model begins its first pass of training: does it still hold what it held as it was sharded?"""
        if not self.any:
            return
        own = {id(parameter) for parameter in module.parameters()}
        parts = [(parameter, before) for known, before in self._parts if id(parameter := known()) in own]
        same = [digests.token(_local(parameter)) == before for parameter, before in parts if before != digests.UNREAD]
        self._probe.event("sharded_start", model=number, parts=len(same), unchanged=bool(same) and all(same))

    def backward(self) -> None:
        """A backward pass is over."""
        if self.any and is_looked_at(self._updates + 1):
            self._after_backward = self._gradients()

    def skipped(self, updates: int) -> None:
        """So many updates were not looked at."""
        self._updates += updates
        self._after_backward = None

    def updating(self) -> None:
        """An optimizer made a step, and its gradients are still there: by which factor were they scaled since?"""
        before, self._after_backward = self._after_backward, None
        self._updates += 1
        if before is None or not is_looked_at(self._updates):
            return
        after = self._gradients()
        if after is None or len(after) != len(before) or not float(before.dot(before)):
            return
        factor = float(before.dot(after) / before.dot(before))
        rest = float((after - factor * before).norm())
        if rest <= ALIKE * float(after.norm()):  # else they were not scaled: clipped one by one, or noise was added
            self._probe.event("sharded_scaling", update=self._updates, factor=factor)

    def _gradients(self) -> Any:
        """A sample of this rank's gradients, flat; None where there are none."""
        import torch

        found = []
        for model in self._models():
            for parameter in model.parameters():
                local = _local(parameter.grad)
                if local is not None and local.numel() and len(found) < TENSORS:
                    found.append(digests.sampled(local).double().cpu())
        return torch.cat(found) if found else None

    def _clipped(self, norm: Any, where: str) -> None:
        """clip_grad_norm_ found a norm. That of sharded tensors is a sum over ranks, and not asked for."""
        update = self._updates + 1
        if is_looked_at(update) and digests.is_readable(norm):
            self._probe.event("clipped", update=update, norm=float(norm), where=where)


def _local(tensor: Any) -> Any:
    """This rank's part of a sharded tensor; None where it is none, or its memory is not there."""
    if tensor is None:
        return None
    kinds = {kind.__name__ for kind in type(tensor).__mro__}
    if "DTensor" in kinds:
        local = tensor._local_tensor
    else:  # a flat parameter, its gradient, or what a wrapper left out
        local = tensor.data
    return local if digests.is_readable(local) else None
