"""Whether modules that behave differently in training and in evaluation (dropout, BatchNorm) are in the right mode."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ...record.probe import Probe
from .patches import called_from
from .steps import Steps


@dataclass(eq=False)
class _Evaluated:
    """Forward passes over one pass of a loader."""

    batches: set[int] = field(default_factory=set)
    in_train_mode: int = 0
    in_eval_mode: int = 0
    where: str = ""


class Modes:
    """The modes that models are called in. *Called on* each rank.

    Args:
        probe: this rank's.
        steps: which know the batches that were read.
        models: the modules that the script trains, as they are known by now.
    """

    def __init__(self, probe: Probe, steps: Steps, models: Callable[[], Iterable[Any]]) -> None:
        self._probe, self._steps, self._models = probe, steps, models
        self._over: dict[Any, _Evaluated] = {}
        self._minds: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        self._was_training: weakref.WeakSet[Any] = weakref.WeakSet()
        self._of_optimizer: weakref.WeakKeyDictionary[Any, weakref.WeakKeyDictionary[Any, bool]] = (
            weakref.WeakKeyDictionary()
        )
        self._told = False

    def called(self, module: Any) -> None:
        """A module that no other called begins a forward pass."""
        pending = self._steps.pending
        if not pending or not self._minds_mode(module) or not self._is_trained(module):
            return
        of = self._over.setdefault(pending[-1].of, _Evaluated())
        of.batches.add(pending[-1].start_ns)
        of.in_train_mode += module.training
        of.in_eval_mode += not module.training
        of.where = of.where or called_from()

    def updated(self, optimizer: Any) -> None:
        """An optimizer made a step: in which mode are the models that it trains? Another may have been trained before, and
        only evaluated since, as a teacher is."""
        if not self._probe.in_step:
            return
        for model in self._models():
            if not self._minds_mode(model) or not self._trains(optimizer, model):
                continue
            if not self._told:
                self._told = True
                self._probe.event("minds_mode", batch_norm=_has_batch_norm(model))
            if model.training:
                self._was_training.add(model)
            elif model in self._was_training:
                self._probe.count("updates_in_eval_mode")

    def close(self) -> None:
        """Say which passes over data that is never trained on were made in train mode."""
        trained = {of.loader for of in self._over if of.trains}
        for of, seen in self._over.items():
            if not of.trains:
                self._probe.event(
                    "evaluated_over",
                    loader=of.loader,
                    batches=len(seen.batches),
                    in_train_mode=seen.in_train_mode,
                    in_eval_mode=seen.in_eval_mode,
                    trains_too=of.loader in trained,
                    where=seen.where,
                )

    def _minds_mode(self, module: Any) -> bool:
        if module not in self._minds:
            self._minds[module] = _has_batch_norm(module) or any(
                "Dropout" in type(part).__name__ and getattr(part, "p", 0) for part in module.modules()
            )
        return self._minds[module]

    def _trains(self, optimizer: Any, model: Any) -> bool:
        """Whether an optimizer holds a parameter of a model."""
        known = self._of_optimizer.setdefault(optimizer, weakref.WeakKeyDictionary())
        if model not in known:
            held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
            known[model] = any(id(parameter) in held for parameter in model.parameters())
        return known[model]

    def _is_trained(self, module: Any) -> bool:
        return any(module is model or module is getattr(model, "module", None) for model in self._models())


def _has_batch_norm(module: Any) -> bool:
    from torch.nn.modules.batchnorm import _BatchNorm

    return any(isinstance(part, _BatchNorm) and part.track_running_stats for part in module.modules())
