"""How a model comes to its first values: memory that was only reserved, tensors that were one and are two."""

from __future__ import annotations

import contextlib
import weakref
from typing import Any

from ...record.probe import Probe
from . import digests
from .patches import Patches, called_from

HUGE = 1e15
"""A weight beyond this was never chosen."""

NAMED = 5


class Starts:
    """What becomes of modules before they are trained. *Called on* each rank.

    A module that is built without memory (on meta) gets it from `to_empty`, which holds what memory happens to hold. What
    nobody writes to until the first pass is told. So are parameters that were one tensor in two places and are two after
    `to_empty`, a move from meta, or a load that assigns.
    """

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._reserved: dict[int, tuple[weakref.ref[Any], int, str]] = {}
        self._sent: set[int] = set()
        self._untied: list[tuple[weakref.ref[Any], list[str], str]] = []
        self._inside = False

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        from torch import nn

        reserved, compared = patches.noting(self._reserve), patches.noting(self._compare)
        watch = self

        def around(fills: bool):
            def of(original):
                def call(module, *args, **kwargs):
                    if watch._inside:
                        return original(module, *args, **kwargs)
                    watch._inside = True
                    try:
                        ties = _ties(module)
                        given = original(module, *args, **kwargs)
                    finally:
                        watch._inside = False
                    if ties:
                        compared(module, ties, called_from())
                    if fills:
                        reserved(module)
                    return given

                return call

            return of

        wrapping = patches.noting(self._wrapping)

        def wrapper(original):
            def __init__(ddp, module, *args, **kwargs):
                wrapping(module)
                original(ddp, module, *args, **kwargs)

            return __init__

        patches.wrap(nn.parallel.DistributedDataParallel, "__init__", wrapper)
        patches.wrap(nn.Module, "to_empty", around(True))
        patches.wrap(nn.Module, "_apply", around(False))
        patches.wrap(nn.Module, "load_state_dict", around(False))

    def _reserve(self, module: Any) -> None:
        for tensor in [*module.parameters(), *module.buffers()]:
            self._reserved[id(tensor)] = (weakref.ref(tensor), tensor._version, digests.token(tensor))

    def _compare(self, module: Any, ties: list[list[str]], where: str) -> None:
        for names in ties:
            if not _is_one(module, names):
                self._untied.append((weakref.ref(module), names, where))

    def met(self, module: Any, number: int) -> None:
        """A model begins its first pass of training."""
        inner = module.module if type(module).__name__ == "DistributedDataParallel" else module
        parameters, buffers = list(inner.named_parameters()), list(inner.named_buffers())
        # zeros may have been written past the counter of writes, through .data: for weights some do that
        unwritten = [name for name, tensor in parameters if self._is_unwritten(tensor) and _holds_any(tensor)]
        unwritten_buffers = [name for name, tensor in buffers if self._is_unwritten(tensor)]
        unfit = [name for name, tensor in parameters if tensor.requires_grad and _is_unfit(tensor)]
        parts = list(module.modules())
        untied = [(names, where) for of, names, where in self._untied if _still(of(), names, parts)]
        self._probe.event(
            "model_start",
            model=number,
            unwritten=len(unwritten),
            unwritten_names=_said(unwritten),
            unwritten_buffers=len(unwritten_buffers),
            unwritten_buffer_names=_said(unwritten_buffers),
            unfit=len(unfit),
            unfit_names=_said(unfit),
            untied=len(untied),
            untied_names="; ".join(" and ".join(names) for names, _ in untied[:NAMED]),
            untied_where=untied[0][1] if untied else "",
        )

    def _is_unwritten(self, tensor: Any) -> bool:
        """Whether a tensor still holds what its memory held as it was reserved."""
        kept = self._reserved.get(id(tensor))
        if kept is None or kept[0]() is not tensor or kept[2] in (digests.UNREAD, digests.NOTHING):
            return False
        return (tensor._version == kept[1] or id(tensor) in self._sent) and digests.token(tensor) == kept[2]

    def _wrapping(self, module: Any) -> None:
        """DDP is about to send rank 0's weights and buffers to all ranks: is what it sends written?"""
        import torch.distributed as dist

        if self._reserved and dist.get_rank() == 0:
            self._sent |= {id(t) for t in [*module.parameters(), *module.buffers()] if self._is_unwritten(t)}


def _holds_any(tensor: Any) -> bool:
    local = getattr(tensor, "_local_tensor", tensor)
    return bool(digests.sampled(local).ne(0).any())


def _is_unfit(tensor: Any) -> bool:
    """Whether a plain weight is not finite, or larger than any that is chosen."""
    import torch

    local = getattr(tensor, "_local_tensor", tensor)
    if not digests.is_readable(local) or not local.is_floating_point() or not local.numel():
        return False
    values = digests.sampled(local).float()
    return not bool((torch.isfinite(values) & (values.abs() < HUGE)).all())


def _ties(module: Any) -> list[list[str]]:
    """Names of parameters that are one tensor in several places."""
    places: dict[int, list[str]] = {}
    with contextlib.suppress(Exception):  # a module that names its parameters in a way of its own
        for name, parameter in module.named_parameters(remove_duplicate=False):
            places.setdefault(id(parameter), []).append(name)
    return [names for names in places.values() if len(names) > 1]


def _is_one(module: Any, names: list[str]) -> bool:
    known = dict(module.named_parameters(remove_duplicate=False))
    return len({id(known.get(name)) for name in names}) == 1


def _still(module: Any, names: list[str], parts: list[Any]) -> bool:
    """Whether a module that is trained, as a whole or as a part, still holds two tensors where it held one."""
    if module is None or all(part is not module for part in parts):
        return False
    known = dict(module.named_parameters(remove_duplicate=False))
    found = [known[name] for name in names if name in known]
    return len(found) > 1 and len({id(one) for one in found}) > 1 and all(one.requires_grad for one in found)


def _said(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
