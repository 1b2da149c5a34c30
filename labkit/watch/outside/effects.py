"""What an optimizer's step does to the weights: whether it gets gradients, and whether weights move by it.

Looked at after the first steps of each optimizer and then ever more seldom, on a sample of the weights.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

from ...record.probe import Probe
from .patches import Patches, called_from
from .replicas import is_looked_at

TENSORS, ELEMENTS = 32, 512
"""Of an optimizer's parameters at most so many are looked at, and so many elements of each, spread evenly."""

BACKWARDS = (1, 16, 32, 64, 128, 256)
"""Backward passes after which weights are compared, while no optimizer has made a step."""


@dataclass(eq=False)
class _Seen:
    """What is known of one optimizer."""

    number: int
    steps: int = 0
    picked: list[Any] = field(default_factory=list)
    start: list[Any] = field(default_factory=list)
    before: list[Any] = field(default_factory=list)
    last_before: list[Any] = field(default_factory=list)
    last_after: list[Any] = field(default_factory=list)
    last_at: int = -1


class Effects:
    """The steps of every optimizer of the process, and what they do. *Called on* each rank; no collective is made."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._of: weakref.WeakKeyDictionary[Any, _Seen] = weakref.WeakKeyDictionary()
        self._made: weakref.WeakSet[Any] = weakref.WeakSet()
        self._count, self._backwards, self._first = 0, 0, []
        self._handles: list[Any] = []

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        from torch.compiler import is_compiling
        from torch.optim import Optimizer
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        before, after, made = patches.noting(self._before), patches.noting(self._after), patches.noting(self._made.add)

        def around(original):
            def __init__(optimizer, *args, **kwargs):
                original(optimizer, *args, **kwargs)
                made(optimizer)

            return __init__

        patches.wrap(Optimizer, "__init__", around)
        self._handles += [
            register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: None if is_compiling() else before(optimizer)),
            register_optimizer_step_post_hook(lambda optimizer, args, kwargs: None if is_compiling() else after(optimizer)),
        ]

    def detach(self) -> None:
        """Watch no more."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def backward(self) -> None:
        """A backward pass is over: while no optimizer made a step, do weights change by other means?"""
        if self._count or not self._made:
            return
        self._backwards += 1
        if self._backwards not in BACKWARDS:
            return
        optimizer = next(iter(self._made))
        now = [_sample(parameter) for parameter in _picked(optimizer)]
        if self._backwards == 1:
            self._first = now
            return
        self._probe.event("not_updated", backwards=self._backwards, weights_move=not _equal(now, self._first))

    def skipped(self, optimizer: Any, updates: int) -> None:
        """An optimizer made updates that were not looked at."""
        seen = self._of.get(optimizer)
        if seen is not None:
            seen.steps += updates

    def _before(self, optimizer: Any) -> None:
        seen = self._of.get(optimizer)
        if seen is None:
            seen = self._of[optimizer] = _Seen(self._count)
            self._count += 1
        seen.steps += 1
        if not is_looked_at(seen.steps):
            return
        seen.picked = _picked(optimizer)
        seen.before = [_sample(parameter) for parameter in seen.picked]
        seen.start = seen.start or seen.before

    def _after(self, optimizer: Any) -> None:
        seen = self._of.get(optimizer)
        if seen is None or not seen.before:
            return
        after = [_sample(parameter) for parameter in seen.picked]
        undone = seen.last_at == seen.steps - 1 and _equal(seen.before, seen.last_before)
        undone = undone and not _equal(seen.last_before, seen.last_after)
        elements, unchanged, unmoved = _compared(seen, after)
        every = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        filled = [parameter.grad for parameter in every if parameter.grad is not None]
        self._probe.event(
            "update_effect",
            optimizer=seen.number,
            update=seen.steps,
            tensors=len(every),
            with_gradient=len(filled),
            gradients_zero=bool(filled) and not any(bool(_local(grad).any()) for grad in filled),
            elements=elements,
            unchanged=unchanged,
            unmoved=unmoved,
            undone=undone,
            moved=not _equal(seen.before, after),
            lr=max((float(group["lr"]) for group in optimizer.param_groups if "lr" in group), default=-1.0),
            half=bool(every) and all(parameter.dtype.itemsize == 2 for parameter in every),
            where=called_from(3),
        )
        seen.last_before, seen.last_after, seen.last_at = seen.before, after, seen.steps
        seen.before = []


def _local(tensor: Any) -> Any:
    """What of a tensor is here: its shard, where ranks hold parts of it; the values of a sparse one."""
    local = getattr(tensor, "_local_tensor", tensor).detach()
    return local.coalesce().values() if local.is_sparse else local


def _picked(optimizer: Any) -> list[Any]:
    every = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    every = [parameter for parameter in every if parameter.device.type != "meta" and _local(parameter).numel()]
    return every[:: max(1, len(every) // TENSORS)][:TENSORS]


def _sample(tensor: Any) -> Any:
    flat = _local(tensor).reshape(-1)
    return flat[:: max(1, flat.numel() // ELEMENTS)][:ELEMENTS].clone()


def _equal(some: list[Any], others: list[Any]) -> bool:
    return len(some) == len(others) and all(bool((a == b).all()) for a, b in zip(some, others, strict=True))


def _compared(seen: _Seen, after: list[Any]) -> tuple[int, int, int]:
    """Elements whose gradient is not 0; of these: as they were before the step; as they were before the first one."""
    elements = unchanged = unmoved = 0
    for parameter, start, before, now in zip(seen.picked, seen.start, seen.before, after, strict=True):
        grad = parameter.grad
        if grad is None or grad.is_sparse:
            continue
        sample = _sample(grad)
        if sample.shape != now.shape or start.shape != now.shape:
            continue
        counts = (sample != 0) & sample.isfinite()
        elements += int(counts.sum())
        unchanged += int((counts & (before == now)).sum())
        unmoved += int((counts & (start == now)).sum())
    return elements, unchanged, unmoved
