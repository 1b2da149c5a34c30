"""Wrappers that make a module data-parallel: DistributedDataParallel, as it is made."""

from __future__ import annotations

import weakref
from typing import Any

from ...record.probe import Probe
from ..ddp import DDPWatch, watch_ddp
from .patches import Patches, called_from, called_through


class Wrappers:
    """Modules that are wrapped, each with its watch.

    Attributes:
        where: the script's line that made the first, file:line.
        made_by: the packages through which it did.
    """

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self.watches: list[DDPWatch] = []
        self.where = ""
        self.made_by = ""
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        from torch.nn.parallel import DistributedDataParallel

        note = patches.noting(self._wrapped)

        def around(original):
            def __init__(ddp, *args, **kwargs):
                original(ddp, *args, **kwargs)
                note(ddp, called_from(2), called_through(2))

            return __init__

        patches.wrap(DistributedDataParallel, "__init__", around)

    def _wrapped(self, ddp: Any, where: str, through: list[str]) -> None:
        if ddp in self._known:
            return
        self._known.add(ddp)
        if not self.where:
            self.where, self.made_by = where, ", ".join(through)
        self.watches.append(watch_ddp(ddp, self._probe))

    def detach(self) -> None:
        """Watch no more."""
        for watch in self.watches:
            watch.close()
        self.watches.clear()
