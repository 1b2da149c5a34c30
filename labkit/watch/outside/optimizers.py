"""Every optimizer of the process: its steps, through torch's own global hooks."""

from __future__ import annotations

import time
from typing import Any

from .patches import Patches
from .steps import Steps

_now = time.monotonic_ns


class Optimizers:
    """Steps of optimizers, wherever they are made."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._handles: list[Any] = []
        self._start = 0

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        note = patches.noting(self._steps.stepped)

        def before(optimizer, args, kwargs):
            self._start = _now()

        def after(optimizer, args, kwargs):
            note(optimizer, self._start, _now())
            self._steps.end_if_enough()

        self._handles += [register_optimizer_step_pre_hook(before), register_optimizer_step_post_hook(after)]

    def detach(self) -> None:
        """Watch no more."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
