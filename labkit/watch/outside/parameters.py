"""Which parameters are trained: who has a gradient, and which optimizer holds whom. Looked at after some of the updates."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...record.probe import Probe
from .patches import Patches, called_from
from .replicas import is_looked_at
from .values import values

NAMED = 5
"""Parameters that are named at most."""

MADE = 4
"""Optimizers at whose making it is noted which parameters there are: who makes more makes one for each of them."""

COMPARED = 64
"""Parameters that no optimizer holds whose values are kept from look to look, at most."""


class Parameters:
    """The parameters of the models that the script trains, and of its optimizers. *Called on* each rank.

    Args:
        probe: this rank's.
        models: the modules that the script trains, as they are known by now.
    """

    def __init__(self, probe: Probe, models: Callable[[], Iterable[Any]]) -> None:
        self._probe, self._models = probe, models
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._stepped: weakref.WeakSet[Any] = weakref.WeakSet()
        self._once_held: weakref.WeakSet[Any] = weakref.WeakSet()
        self._frozen_at_wrap: weakref.WeakKeyDictionary[Any, frozenset[str]] = weakref.WeakKeyDictionary()
        self._alive: dict[int, weakref.ref[Any]] = {}
        self._made_so_far = 0
        self._before: dict[int, np.ndarray] = {}
        self.where = ""

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        from torch.nn.parallel import DistributedDataParallel
        from torch.optim import Optimizer

        made, wrapped = patches.noting(self._made), patches.noting(self._wrapped)

        def optimizers(original):
            def __init__(optimizer, *args, **kwargs):
                original(optimizer, *args, **kwargs)
                made(optimizer, called_from())

            return __init__

        def wrappers(original):
            def __init__(ddp, module, *args, **kwargs):
                original(ddp, module, *args, **kwargs)
                wrapped(ddp)

            return __init__

        patches.wrap(Optimizer, "__init__", optimizers)
        patches.wrap(DistributedDataParallel, "__init__", wrappers)

    def _made(self, optimizer: Any, where: str) -> None:
        self._optimizers.add(optimizer)
        self.where = self.where or where
        self._made_so_far += 1
        self._alive = _all_parameters() if self._made_so_far <= MADE else {}

    def _wrapped(self, ddp: Any) -> None:
        frozen = [name for name, parameter in ddp.module.named_parameters() if not parameter.requires_grad]
        self._frozen_at_wrap[ddp] = frozenset(frozen)

    def stepped(self, optimizer: Any) -> None:
        """An optimizer made a step."""
        self._stepped.add(optimizer)
        self._optimizers.add(optimizer)

    def updated(self, update: int) -> None:
        """The optimizers have made so many steps: look, if it is time."""
        if not is_looked_at(update):
            return
        held = {id(parameter) for optimizer in self._optimizers for parameter in _of_optimizer(optimizer)}
        models = list(self._models())
        in_models = {id(parameter) for model in models for parameter in model.parameters()}
        foreign = [p for optimizer in self._stepped for p in _of_optimizer(optimizer) if id(p) not in in_models]
        for number, model in enumerate(models):
            held_now = any(id(parameter) in held for parameter in model.parameters())
            if held_now:
                self._once_held.add(model)
            elif model in self._once_held:
                continue  # its optimizer is gone: its training is over
            named = [(name, p) for name, p in _inner(model).named_parameters() if p.requires_grad]
            unheld = [(name, p) for name, p in named if p.grad is not None and id(p) not in held]
            unheld = [(name, p) for name, p in unheld if not self._moved(p)]
            later = [name for name, p in unheld if self._is_later(p)]
            frozen = self._frozen_at_wrap.get(model, frozenset())
            unfrozen = [name for name, p in named if name in frozen and p.grad is not None]
            self._probe.event(
                "parameters",
                update=update,
                model=number,
                trainable=len(named),
                without_gradient=sum(p.grad is None and id(p) in held for _, p in named),
                unheld=len(unheld),
                unheld_names=_names([name for name, _ in unheld]),
                later=len(later),
                later_names=_names(later),
                unfrozen=len(unfrozen),
                unfrozen_names=_names(unfrozen),
                foreign=len(foreign),
            )

    def _moved(self, parameter: Any) -> bool:
        """Whether a parameter that no optimizer holds has changed since the look before: the script moves it itself."""
        now = values(parameter, 8) if len(self._before) < COMPARED or id(parameter) in self._before else None
        before = self._before.get(id(parameter))
        if now is not None:
            self._before[id(parameter)] = now
        return now is not None and before is not None and not np.array_equal(now, before, equal_nan=True)

    def _is_later(self, parameter: Any) -> bool:
        """Whether it was made after the last optimizer was."""
        known = self._alive.get(id(parameter))
        return bool(self._alive) and (known is None or known() is not parameter)


def _all_parameters() -> dict[int, weakref.ref[Any]]:
    """Every parameter that there is now. Its type is asked for, and no attribute of what else there is."""
    from torch.nn import Parameter

    return {id(one): weakref.ref(one) for one in gc.get_objects() if issubclass(type(one), Parameter)}


def _of_optimizer(optimizer: Any) -> Iterable[Any]:
    return (parameter for group in optimizer.param_groups for parameter in group["params"])


def _inner(model: Any) -> Any:
    from torch.nn.parallel import DistributedDataParallel

    return model.module if isinstance(model, DistributedDataParallel) else model


def _names(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
