"""Every optimizer of the process: its steps, through torch's own global hooks."""

from __future__ import annotations

import sys
import time
from typing import Any

from .following import FollowedSteps
from .patches import Patches, is_own

_now = time.monotonic_ns


class Optimizers:
    """Steps of optimizers, wherever they are made."""

    def __init__(self, steps: FollowedSteps) -> None:
        self._steps = steps
        self._handles: list[Any] = []
        self._open: list[tuple[Any, int]] = []

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        from torch.compiler import is_compiling
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        note = patches.noting(self._steps.stepped)

        def before(optimizer, args, kwargs):
            if is_compiling():
                return
            while self._open and not _is_running(self._open[-1][0]):
                self._open.pop()  # its step was ended by an error
            self._open.append((optimizer, _now()))
            self._steps.in_update = True

        def after(optimizer, args, kwargs):
            if is_compiling():
                return
            if not self._open or self._open[-1][0] is not optimizer:
                return
            _, start = self._open.pop()
            self._steps.in_update = bool(self._open)
            if self._open:
                return  # a step of another optimizer's own, which is not over yet: others' parts may be still to come
            note(optimizer, start, _now())
            self._steps.end_if_enough()

        self._handles += [register_optimizer_step_pre_hook(before), register_optimizer_step_post_hook(after)]

    def follow(self, patches: Patches) -> None:
        """Call all hooks of labkit's in bursts alone, and one that follows between them."""
        from torch.optim.optimizer import (
            _global_optimizer_post_hooks,
            _global_optimizer_pre_hooks,
            register_optimizer_step_post_hook,
        )

        sampling, steps = patches.sampling, self._steps
        for hooks in (_global_optimizer_pre_hooks, _global_optimizer_post_hooks):
            for key, hook in list(hooks.items()):
                if is_own(hook.__code__.co_filename):
                    sampling.hook_only_in_bursts(hooks, key)

        def after(optimizer, args, kwargs):
            if sampling.in_burst:
                return
            try:
                steps.followed_update(optimizer)
            except Exception:
                patches.keep_fault()
            if steps.most is not None:
                steps.end_if_enough()

        self._handles.append(register_optimizer_step_post_hook(after))

    def detach(self) -> None:
        """Watch no more."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()


def _is_running(optimizer: Any) -> bool:
    """Whether a step of this optimizer is under way, by the frames that lead here."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name == "wrapper" and frame.f_locals.get("self") is optimizer:
            return True
        frame = frame.f_back
    return False
