"""What models are called with in training: whether ranks that should learn from different numbers are given the same.

Only hashes of the first calls are kept, and of ever fewer afterwards; of each call a few tensors.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from ...record.probe import Probe
from . import digests
from .replicas import is_looked_at

FIRST = 8
"""Calls of each model that are looked at, before only some are."""

TENSORS = 4
"""Tensors of a call."""

DISTINCT = 4
"""Different values from which on a tensor may have been drawn."""


class Inputs:
    """The calls of models in training. *Called on* each rank; no collective is made."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._calls: weakref.WeakKeyDictionary[Any, list[int]] = weakref.WeakKeyDictionary()

    def given(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A model is called, in training."""
        import torch.distributed as dist

        if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
            return
        known = self._calls.setdefault(module, [len(self._calls), 0])
        known[1] += 1
        if known[1] > FIRST and not is_looked_at(known[1]):
            return
        tensors = list(_tensors((*args, *kwargs.values())))[:TENSORS]
        each = [digests.token(tensor) if _may_be_drawn(tensor) else digests.UNREAD for tensor in tensors]
        if any(one != digests.UNREAD for one in each):
            self._probe.event("inputs", model=known[0], call=known[1], each=" ".join(each))


def _tensors(values: Any, depth: int = 2) -> Iterator[Any]:
    import torch

    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif depth and isinstance(value, (list, tuple)):
            yield from _tensors(value, depth - 1)
        elif depth and isinstance(value, dict):
            yield from _tensors(value.values(), depth - 1)


def _may_be_drawn(tensor: Any) -> bool:
    """Whether a tensor's values are several, and in no order: no constant, no positions."""
    if not digests.is_readable(tensor) or tensor.numel() < DISTINCT:
        return False
    values = digests.sampled(tensor)[:256]
    if values.dtype.is_complex or len(values.unique()) < DISTINCT:
        return False
    return bool((values[1:] < values[:-1]).any())
