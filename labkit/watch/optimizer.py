"""Watch optimizers: that they step, what gradients they get, what their steps change, which parameters they hold.

A step counts once (`updates`), however many watches see it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from ..record.probe import Probe
from ..record.vocabulary import LOWEST_EXPONENT
from .changes import Changes
from .memory import GRADIENTS, PARAMETERS, STATE, MemoryWatch, local, state_tensors

HIGHEST_EXPONENT = 130
"""Gradients are sorted by powers of two up to this one; fp32's own range lies within."""

FIRST_UPDATE = "first_update"

_counted: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
"""Optimizers whose step under way, or last step, was counted, and by which probe."""


def _begin_step(optimizer: Optimizer, *_: Any) -> None:
    _counted.pop(optimizer, None)


def _count(probe: Probe, optimizer: Optimizer) -> None:
    if probe.in_step and _counted.get(optimizer) != id(probe):
        _counted[optimizer] = id(probe)
        probe.count("updates")


@contextmanager
def watch_updates(probe: Probe) -> Iterator[None]:
    """Count in each step of the probe (`updates`) the steps that any optimizer of this process makes while this is open.

    A step without the count is one in which none was made: so a loop that trains nothing is known from what it did.
    An update by hand, without an optimizer, is not seen. *Called on* a rank, before the first step. No collective.
    """
    probe.declare(watches_updates=True)
    hooks = [
        register_optimizer_step_pre_hook(_begin_step),
        register_optimizer_step_post_hook(lambda optimizer, *_: _count(probe, optimizer)),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


class StepWatch:
    """Counts the steps of one optimizer (`updates`), and calls back before and after each.

    *Called on* a rank; no collective. `close` stops it.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        probe: Probe,
        before: Callable[[], None] = lambda: None,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        def begin(*_: Any) -> None:
            _begin_step(optimizer)
            before()

        def end(*_: Any) -> None:
            _count(probe, optimizer)
            after()

        self._handles = [optimizer.register_step_pre_hook(begin), optimizer.register_step_post_hook(end)]

    def close(self) -> None:
        """Stop watching."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()


class OptimizerWatch:
    """Record in each step what gradients an optimizer gets and what it changes. *Called on* a rank; no collective.

    Written: the counts updates, gradient_elements, gradient_zeros, gradient_nonfinite, weights_unchanged, updates_lost,
    weights_nonfinite; the scalar grad_norm; once, what is kept, as the event memory; at `close`, the array
    gradient_exponents. For each update it copies the weights once and compares, and waits for a GPU, so a step that is
    watched takes longer than one that is not. Of sharded weights it sees the shards of this rank.

    Args:
        optimizer: whose updates count.
        probe: writes into the step that is open; an update outside a step is not recorded.
        after: called after each update.
        whole_step: compare the weights of `begin_step` with those of `end_step`, and with the first ones (counts
            weights_with_gradient, weights_as_first): for a loop that goes on with the weights around its update, as one
            does that rounds them itself. Otherwise the weights just before and just after the update are compared.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        probe: Probe,
        after: Callable[[], None] = lambda: None,
        *,
        whole_step: bool = False,
    ) -> None:
        self._optimizer, self._probe, self._after = optimizer, probe, after
        self._exponents = np.zeros(HIGHEST_EXPONENT - LOWEST_EXPONENT + 1, dtype=np.int64)
        self._parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self._whole_step = whole_step
        self._changes = Changes(self._parameters, probe, from_the_start=whole_step)
        self._memory_told = False
        self._steps = StepWatch(optimizer, probe, self._before_update, self._after_update)

    def close(self) -> None:
        """Stop, and leave how often gradients of each power of two came to the optimizer."""
        self._steps.close()
        self._probe.array("gradient_exponents", self._exponents)

    def begin_step(self) -> None:
        """Before whatever the loop does in a step; see `whole_step`."""
        self._changes.begin()

    def end_step(self) -> None:
        """After whatever the loop did in a step, and while it is still open; see `whole_step`."""
        if self._changes.end():
            self._tell_memory()

    @torch.no_grad()
    def _before_update(self) -> None:
        gradients = [local(p.grad.detach()) for p in self._parameters if p.grad is not None]
        if not gradients or not self._probe.in_step:
            return
        if not self._whole_step:
            self._changes.begin()
        self._changes.push()
        flat = torch.cat([g.reshape(-1).float() for g in gradients])
        finite = flat[torch.isfinite(flat)]
        self._probe.count("gradient_elements", flat.numel())
        self._probe.count("gradient_zeros", int((flat == 0).sum()))
        self._probe.count("gradient_nonfinite", flat.numel() - finite.numel())
        self._probe.scalar("grad_norm", flat.double().norm().item())
        powers = torch.frexp(finite[finite != 0]).exponent.long() - 1  # frexp's fractions begin at a half
        counts = torch.bincount(powers - LOWEST_EXPONENT, minlength=len(self._exponents))
        self._exponents += counts.cpu().numpy()

    def _after_update(self) -> None:
        if not self._whole_step and self._probe.in_step:
            self.end_step()
        self._after()

    def _tell_memory(self) -> None:
        if not self._memory_told:
            self._memory_told = True
            gradients = [p.grad for p in self._parameters if p.grad is not None]
            kept = {PARAMETERS: self._parameters, GRADIENTS: gradients, STATE: state_tensors(self._optimizer)}
            MemoryWatch(self._probe, lambda: kept).look(FIRST_UPDATE)


def watch_optimizer(optimizer: Optimizer, probe: Probe) -> OptimizerWatch:
    """Begin to record what an optimizer gets and changes; `close` the result before the probe. See `OptimizerWatch`."""
    return OptimizerWatch(optimizer, probe)


def tell_known_parameters(model: nn.Module, optimizer: Any, probe: Probe) -> None:
    """Record which of a model's parameters an optimizer holds, and how many it holds that the model does not have.

    *Called on* a rank, once both are made and the model is wrapped. Written: the event optimizer_knows.
    """
    own = {id(parameter) for parameter in model.parameters()}
    held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    probe.event("optimizer_knows", known=len(own & held), parameters=len(own), orphans=len(held - own))
