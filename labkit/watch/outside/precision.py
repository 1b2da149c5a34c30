"""Mixed precision as a script uses it: where autocast is open, what the scaler is asked, and what is clipped when."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ...record.probe import Probe
from .patches import Patches, called_from
from .replicas import is_looked_at


class Precision:
    """autocast, GradScaler and clipping of the whole process. *Called on* each rank.

    Counts go to the step that is open; what was seen first is told where.

    Args:
        probe: this rank's.
        scaler_asked: called as a scaler is asked for a step, which it may skip.
    """

    def __init__(self, probe: Probe, scaler_asked: Callable[[], None]) -> None:
        self._probe, self._scaler_asked = probe, scaler_asked
        self._scalers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._told: set[str] = set()
        self._held: set[int] = set()
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()
        self._scaled_since = False

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        import torch
        from torch.amp import autocast_mode, grad_scaler

        scaler, sampling = grad_scaler.GradScaler, patches.sampling
        entered = patches.noting(self._entered)
        scaled, asked, clipped = (patches.noting(note) for note in (self._scaled, self._asked, self._clipped))

        def enter(original):
            def __enter__(context):
                given = original(context)
                if sampling.in_burst:
                    entered(context)
                return given

            return __enter__

        def scale(original):
            def scale(scaler, outputs):
                scaled(scaler)
                return original(scaler, outputs)

            return scale

        def step(original):
            def step(scaler, optimizer, *args, **kwargs):
                asked(scaler)
                return original(scaler, optimizer, *args, **kwargs)

            return step

        def clip(original):
            def clip(parameters, *args, **kwargs):
                if torch.compiler.is_compiling() or not sampling.in_burst:
                    return original(parameters, *args, **kwargs)
                kept = list(parameters) if not isinstance(parameters, torch.Tensor) else parameters
                clipped(kept)
                return original(kept, *args, **kwargs)

            return clip

        patches.wrap(autocast_mode.autocast, "__enter__", enter)
        patches.wrap(torch.Tensor, "backward", _before(patches.noting(self._backward)))
        for name in ("half", "bfloat16", "to"):
            patches.wrap(torch.nn.Module, name, _around_cast(patches.noting(self._cast)))
        patches.wrap(scaler, "scale", scale)
        patches.wrap(scaler, "step", step)
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            original = getattr(torch.nn.utils, name)
            patches.wrap(torch.nn.utils.clip_grad, name, clip)
            if getattr(torch.nn.utils, name) is original:
                patches.put(torch.nn.utils, name, getattr(torch.nn.utils.clip_grad, name))

    # What is seen

    def _tell(self, what: str, where: str) -> None:
        """Note something once, with its place."""
        if what not in self._told:
            self._told.add(what)
            self._probe.event("precision_use", what=what, where=where)

    def _entered(self, context: Any) -> None:
        if context._enabled:
            kind = str(context.fast_dtype).removeprefix("torch.")
            self._tell(f"autocast {kind}", called_from(3))

    def _backward(self) -> None:
        """A backward pass begins: is autocast open?"""
        import torch

        if any(torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda")):
            self._tell("backward in autocast", called_from(3))
            if self._probe.in_step:
                self._probe.count("backward_in_autocast")

    def _cast(self, module: Any) -> None:
        """A module's weights went from 32 bits to 16: are they those that an optimizer trains?"""
        if any(id(parameter) in self._held for parameter in module.parameters()) and self._probe.in_step:
            self._probe.count("weights_cast_down")
            self._tell("trained weights cast down", called_from(3))

    def _scaled(self, scaler: Any) -> None:
        self._scalers.add(scaler)
        self._scaled_since = self._scaled_since or scaler.is_enabled()
        if scaler.is_enabled():
            self._tell("scaler", called_from(3))

    def _asked(self, scaler: Any) -> None:
        self._scaler_asked()
        if scaler.is_enabled() and self._probe.in_step:
            self._probe.count("scaler_steps")
            self._probe.scalar("scale", float(scaler.get_scale()))

    def _clipped(self, parameters: Any) -> None:
        if not self._probe.in_step:
            return
        self._probe.count("clips")
        if not self._scalers:
            return
        mine = {id(parameter) for parameter in parameters} if isinstance(parameters, list) else {id(parameters)}
        if any(self._is_scaled(scaler, mine) for scaler in self._scalers):
            self._probe.count("clips_while_scaled")
            self._tell("clipped while scaled", called_from(3))

    @staticmethod
    def _is_scaled(scaler: Any, parameters: set[int]) -> bool:
        """Whether gradients of these parameters are still multiplied by the scaler's scale."""
        if not scaler.is_enabled() or scaler._scale is None or float(scaler.get_scale()) == 1.0:
            return False
        unscaled = [state for state in scaler._per_optimizer_states.values() if state["stage"].name != "READY"]
        return not unscaled

    @staticmethod
    def _still_scaled(scaler: Any, optimizer: Any) -> bool:
        """Whether an optimizer made its step on gradients that still carry the scale. One that takes the scale along divides
        by it itself."""
        if not scaler.is_enabled() or scaler._scale is None or float(scaler.get_scale()) == 1.0:
            return False
        state = scaler._per_optimizer_states.get(id(optimizer))
        return (state is None or state["stage"].name == "READY") and not hasattr(optimizer, "grad_scale")

    def resumed(self) -> None:
        """A burst begins: what was scaled before it is over."""
        self._scaled_since = False

    def updating(self, optimizer: Any, update: int) -> None:
        """An optimizer makes a step: is autocast still open, and are its weights cast?"""
        import torch

        looked = is_looked_at(update) or optimizer not in self._known
        if looked:
            self._known.add(optimizer)
            self._held |= {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        if not self._probe.in_step:
            return
        if self._scaled_since and any(self._still_scaled(scaler, optimizer) for scaler in self._scalers):
            self._probe.count("updates_while_scaled")
            self._tell("stepped while scaled", called_from(4))
        self._scaled_since = False
        opened = any(torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda"))
        if not opened and not looked:
            return  # which types weights have seldom changes, and takes a look at each of them
        kinds = {p.dtype for group in optimizer.param_groups for p in group["params"] if p.grad is not None}
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind) and torch.float32 in kinds and torch.is_autocast_cache_enabled():
                self._probe.count("autocast_open_at_update")
                self._tell("autocast open at update", called_from(4))
                return
        if kinds & {torch.float16}:
            self._tell("fp16 weights", called_from(4))
        if kinds & {torch.bfloat16}:
            self._tell("bf16 weights", called_from(4))


def _before(note: Callable[[], None]) -> Callable[[Any], Any]:
    """Wrap a call by one that notes first."""

    def around(original):
        def called(*args, **kwargs):
            note()
            return original(*args, **kwargs)

        return called

    return around


def _around_cast(note: Callable[[Any], None]) -> Callable[[Any], Any]:
    """Wrap a method of a module by one that notes where it took its weights from 32 bits to 16."""

    def width(module: Any) -> int:
        first = next((p for p in module.parameters() if p.is_floating_point()), None)
        return 0 if first is None else first.dtype.itemsize

    def around(original):
        def cast(module, *args, **kwargs):
            before = width(module)
            given = original(module, *args, **kwargs)
            if before >= 4 and width(module) == 2:
                note(module)
            return given

        return cast

    return around
