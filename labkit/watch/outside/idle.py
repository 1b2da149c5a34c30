"""Weights that an optimizer holds and that never get a gradient: is what they belong to computed in each pass all the same?

Looked at when the other parameters are. A hook is put on the modules that own such weights, for one call, and only there.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...record.probe import Probe
from .replicas import is_looked_at
from .values import values

FROM = 3
"""Updates after which the modules of such weights are looked at."""

FEW = 8
"""Values of a tensor that are kept, to tell whether it changes."""

NAMED = 3


class Idle:
    """Weights without a gradient. *Called on* each rank.

    Args:
        probe: this rank's.
        models: the modules that the script trains.
    """

    def __init__(self, probe: Probe, models: Callable[[], Iterable[Any]]) -> None:
        self._probe, self._models = probe, models
        self._first: dict[int, tuple[weakref.ref[Any], np.ndarray | None]] = {}
        self._moved: set[int] = set()
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._called: dict[int, tuple[bool, bool]] = {}
        self._handles: list[Any] = []

    def detach(self) -> None:
        """Watch no more."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def updated(self, optimizer: Any, update: int) -> None:
        """The optimizers have made so many steps, the last one by this one: look, if it is time."""
        self._optimizers.add(optimizer)
        if not is_looked_at(update):
            return
        self.detach()
        held = [p for one in self._optimizers for group in one.param_groups for p in group["params"] if p.requires_grad]
        idle = [parameter for parameter in held if self._is_idle(parameter)]
        if not idle or len(idle) > 4096:
            return
        owners = self._owners({id(parameter) for parameter in idle})
        if update > FROM:
            self._tell(update, held, owners)
        self._called.clear()
        for _, module, _ in owners:
            self._watch_once(module)

    def _is_idle(self, parameter: Any) -> bool:
        """Whether a parameter has no gradient, had none at any look, and is as it was at the first."""
        key = id(parameter)
        known = self._first.get(key)
        if known is None or known[0]() is not parameter:
            self._first[key] = (weakref.ref(parameter), values(parameter, FEW))
            self._moved.discard(key)
        first = self._first[key][1]
        if first is None or parameter.grad is not None or not np.array_equal(first, values(parameter, FEW)):  # pyright: ignore
            self._moved.add(key)
        return key not in self._moved

    def _owners(self, idle: set[int]) -> list[tuple[str, Any, list[Any]]]:
        """(name, module, its idle parameters) of each module that has any for itself."""
        found = []
        for model in self._models():
            if type(model).__name__ == "OptimizedModule":
                continue  # a hook would have it compiled again
            for name, module in model.named_modules():
                own = [parameter for parameter in module.parameters(recurse=False) if id(parameter) in idle]
                if own:
                    found.append((name.removeprefix("module."), module, own))
        return found

    def _watch_once(self, module: Any) -> None:
        """Note how a module is called next."""
        import torch

        def calls(module: Any, given: Any) -> None:
            self._called[id(module)] = (torch.is_grad_enabled(), module.training)
            handle.remove()

        handle = module.register_forward_pre_hook(calls)
        self._handles.append(handle)

    def _tell(self, update: int, held: list[Any], owners: list[tuple[str, Any, list[Any]]]) -> None:
        called = [(name, own, *self._called[id(module)]) for name, module, own in owners if id(module) in self._called]
        if not called:
            return
        elements = sum(parameter.numel() for _, own, _, _ in called for parameter in own)
        names = [name or "the model" for name, _, _, _ in called]
        self._probe.event(
            "idle_weights",
            update=update,
            tensors=sum(len(own) for _, own, _, _ in called),
            share=elements / max(1, sum(parameter.numel() for parameter in held)),
            names=", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else ""),
            no_grad=not any(grad for _, _, grad, _ in called),
            training=all(training for _, _, _, training in called),
        )
