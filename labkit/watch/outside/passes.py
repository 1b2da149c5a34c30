"""Forward and backward passes: the modules that no other module calls, and every call of backward.

`nn.Module.__call__` is replaced once for all modules; a module that another one calls is passed through at once, which
costs some tens of nanoseconds.
"""

from __future__ import annotations

import functools
import time
import weakref
from collections.abc import Callable
from typing import Any

from .following import FollowedSteps, loss_of
from .patches import Patches, called_from, is_unreal

_now = time.monotonic_ns


class Passes:
    """The passes of the process.

    Args:
        steps: what they are steps of.
        met: called with each module that no other called, as it begins a pass of training.

    Attributes:
        where_backward: where the script calls backward first, file:line.
        phase: "forward" or "backward" within such a pass, else empty.
        before_forward: called with module, arguments and whether it learns, as a forward pass begins.
    """

    def __init__(self, steps: FollowedSteps, met: Callable[[Any], None]) -> None:
        self._steps, self._met = steps, met
        self._inside = False
        self.phase = ""
        self.before_forward: Callable[[Any, Any, Any, bool], None] = lambda module, args, kwargs, learns: None
        self.where_backward = ""
        self._witness: Any = None
        self._used = self._onto_used = False
        self._holders: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        self._since_update = 0
        self.fed: Callable[[tuple[Any, ...], dict[str, Any]], None] = lambda args, kwargs: None
        """Called with what such a module is given."""

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        import torch
        from torch import nn

        self._attach_forward(patches, torch, nn)
        self._attach_backward(patches, torch)

    def _attach_forward(self, patches: Patches, torch: Any, nn: Any) -> None:
        watch, steps = self, self._steps
        compiling, grad_enabled, unreal = torch.compiler.is_compiling, torch.is_grad_enabled, is_unreal()
        met, fed = patches.noting(self._met), patches.noting(lambda *of: self.fed(*of))
        begins, ended = patches.noting(steps.forward), patches.noting(steps.forwarded)
        before = patches.noting(lambda *given: watch.before_forward(*given))

        def around(original):
            def __call__(module, *args, **kwargs):
                if compiling() or watch._inside or unreal():
                    return original(module, *args, **kwargs)
                grad = _kind(module, grad_enabled())
                if grad is None:
                    return original(module, *args, **kwargs)  # a loss, a metric: no pass of a model
                before(module, args, kwargs, grad)
                watch._inside, start = True, _now()
                watch.phase = "forward"
                begins(start, grad, (args, kwargs))
                if grad:
                    met(module)
                    fed(args, kwargs)
                try:
                    given = original(module, *args, **kwargs)
                finally:
                    watch._inside, watch.phase = False, ""
                if grad:
                    ended(start, _now())
                return given

            return __call__

        patches.wrap(nn.Module, "__call__", around)

    def _attach_backward(self, patches: Patches, torch: Any) -> None:
        watch, compiling, unreal = self, torch.compiler.is_compiling, is_unreal()
        note, look = patches.noting(self._backward), patches.noting(self._look_at_gradients)

        def around(original):
            def backward(*args, **kwargs):
                if compiling() or watch._inside or unreal():
                    return original(*args, **kwargs)
                watch.where_backward = watch.where_backward or called_from()
                look()
                watch._inside, start = True, _now()
                watch.phase = "backward"
                try:
                    given = original(*args, **kwargs)
                finally:
                    watch._inside, watch.phase = False, ""
                note(args[0] if args else kwargs.get("tensors"), start, _now())
                return given

            return backward

        patches.wrap(torch.Tensor, "backward", around)
        patches.wrap(torch.autograd, "backward", around)

    def only_in_bursts(self, patches: Patches) -> None:
        """Let modules and calls of backward alone between bursts. *Called* once all watchers are attached."""
        import torch
        from torch import nn

        sampling, steps = patches.sampling, self._steps
        compiling = torch.compiler.is_compiling
        plain, inside = patches.original(torch.autograd, "backward"), False

        @functools.wraps(plain)
        def backward(*args, **kwargs):
            nonlocal inside
            if inside or compiling():
                return plain(*args, **kwargs)
            inside, start = True, _now()
            try:
                given = plain(*args, **kwargs)
            finally:
                inside = False
            try:
                steps.followed_backward(start, args[0] if args else kwargs.get("tensors"))
            except Exception:
                patches.keep_fault()
            return given

        def train(original):
            def train(module, mode=True):
                if not mode and not sampling.in_burst:
                    look()
                return original(module, mode)

            return train

        look = patches.noting(steps.look_closely)
        patches.wrap(nn.Module, "train", train)
        sampling.only_in_bursts(nn.Module, "__call__", patches.original(nn.Module, "__call__"))
        sampling.only_in_bursts(torch.Tensor, "backward", patches.original(torch.Tensor, "backward"))
        sampling.only_in_bursts(torch.autograd, "backward", backward)
        for owner in (torch.nn.utils, torch.nn.utils.clip_grad):
            for name in ("clip_grad_norm_", "clip_grad_value_"):
                sampling.only_in_bursts(owner, name, patches.original(owner, name))

    def _look_at_gradients(self) -> None:
        """A backward pass begins: what is in the gradients that it adds to, by one parameter that the last update used."""
        witness = self._witness() if self._witness is not None else None
        if witness is None or self._steps.in_update:
            return
        grad = witness.grad
        filled = grad is not None and bool(grad.any())
        if self._used:
            self._onto_used = filled
        elif not filled:
            self._onto_used = False  # cleared since, by a script that makes a pass for another end in between
            if self._since_update:
                self._steps.backward_unused(self._since_update, at_end=self._steps.new_epoch)
            self._since_update = 0
        elif self._since_update and self._steps.new_epoch:
            self._steps.backward_onto(last_epoch=True)
        self._used = False
        self._steps.new_epoch = False

    def scaler_asked(self) -> None:
        """A scaler is asked for a step: whether it takes one or skips it, its gradients have been looked at."""
        self._since_update = 0

    def updated(self, optimizer: Any) -> None:
        """An optimizer made a step: its gradients are used from now on."""
        self._since_update = 0
        if self._witness is None or self._witness() is None:
            self._choose_witness(optimizer)
        if not self._holds_witness(optimizer):
            return  # of another model, or of none that has gradients to add to
        if self._onto_used:
            self._steps.backward_onto(used=True)
        self._used, self._onto_used = True, False

    def resumed(self, updates: int, since_update: int) -> None:
        """A burst begins, after so many updates that were not looked at, and passes since the last of them."""
        if not updates and not since_update:
            return
        self._used, self._onto_used = updates > 0 and not since_update, False
        self._since_update = since_update

    def _choose_witness(self, optimizer: Any) -> None:
        self._holders.clear()
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and not parameter.grad.is_sparse:
                    self._witness = weakref.ref(parameter)
                    return

    def _holds_witness(self, optimizer: Any) -> bool:
        witness = self._witness() if self._witness is not None else None
        if witness is None:
            return False
        if optimizer not in self._holders:
            self._holders[optimizer] = any(of is witness for group in optimizer.param_groups for of in group["params"])
        return self._holders[optimizer]

    def _backward(self, of: Any, start: int, end: int) -> None:
        self._since_update += not self._steps.in_update
        self._steps.backward_in_update = self._steps.backward_in_update or self._steps.in_update
        self._steps.backward(start, end, loss_of(of))


def _kind(module: Any, grad: bool) -> bool | None:
    """Whether a pass of a module is one of training; None where it is no model's: one without parameters, or unasked."""
    try:
        if grad and _trains(module) and _learns(module):
            return True
        return False if _has_parameters(module) else None
    except Exception:  # a class of the script's own may answer as it likes
        return None


def _trains(module: Any) -> bool:
    """Whether a module is in training mode. A wrapper may have been left in the other while the module in it is not."""
    return module.training or any(child.training for child in module.children())


def _learns(module: Any) -> bool:
    return any(parameter.requires_grad for parameter in module.parameters())


def _has_parameters(module: Any) -> bool:
    return next(module.parameters(), None) is not None
