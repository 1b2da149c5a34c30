"""Mixed precision as a script uses it: where autocast is open, what the scaler is asked, and what is clipped when."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ...record.probe import Probe
from .patches import Patches, called_from


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

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        import torch
        from torch.amp import autocast_mode, grad_scaler

        scaler = grad_scaler.GradScaler
        entered = patches.noting(self._entered)
        scaled, asked, clipped = (patches.noting(note) for note in (self._scaled, self._asked, self._clipped))

        def enter(original):
            def __enter__(context):
                given = original(context)
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
                kept = list(parameters) if not isinstance(parameters, torch.Tensor) else parameters
                clipped(kept)
                return original(kept, *args, **kwargs)

            return clip

        patches.wrap(autocast_mode.autocast, "__enter__", enter)
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

    def _scaled(self, scaler: Any) -> None:
        self._scalers.add(scaler)
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

    def updating(self, optimizer: Any) -> None:
        """An optimizer makes a step: is autocast still open, and are its weights cast?"""
        import torch

        if not self._probe.in_step:
            return
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
