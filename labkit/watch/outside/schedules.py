"""Learning rates: what each update used, and how often schedulers were stepped."""

from __future__ import annotations

from typing import Any

from ...record.probe import Probe
from .patches import Patches, called_from


class Schedules:
    """The learning-rate schedulers of the process. *Called on* each rank."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._calls, self._updates = 0, 0
        self._inside = False
        self.where = ""

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        from torch.optim import lr_scheduler

        watch = self
        note = patches.noting(self._stepped)

        def around(original):
            def step(scheduler, *args, **kwargs):
                # the first one is made by the scheduler itself, and one of a chain by the chain
                if watch._inside or getattr(scheduler, "_is_initial", False):
                    return original(scheduler, *args, **kwargs)
                note(called_from())
                watch._inside = True
                try:
                    return original(scheduler, *args, **kwargs)
                finally:
                    watch._inside = False

            return step

        for kind in vars(lr_scheduler).values():
            if isinstance(kind, type) and kind.__module__ == lr_scheduler.__name__ and "step" in vars(kind):
                patches.wrap(kind, "step", around)

    def _stepped(self, where: str) -> None:
        self._calls += 1
        self.where = self.where or where
        if self._calls == 1:
            self._probe.event("scheduler", where=where, updates_before=self._updates)

    def updated(self, optimizer: Any) -> None:
        """An optimizer made a step: write which learning rate it used, and what the schedulers did since the last."""
        self._updates += 1
        if not self._probe.in_step:
            return
        rate = optimizer.param_groups[0].get("lr")
        if rate is not None:
            self._probe.scalar("lr_used", float(rate))
        if self._calls:
            self._probe.scalar("scheduler_steps", self._calls)
