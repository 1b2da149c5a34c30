"""The epoch that a sampler believes in, as each pass over a loader begins."""

from __future__ import annotations

from typing import Any

from ...record.probe import Probe
from .patches import Patches

PASSES = 200
"""Passes that are noted, at most."""


class Positions:
    """Samplers that order their data by the number of the epoch. *Called on* each rank."""

    def __init__(self, probe: Probe) -> None:
        self._probe, self._count = probe, 0

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        from torch.utils.data import dataloader

        note = patches.noting(self._begun)

        def begin(original):
            def __init__(iterator, loader, *args, **kwargs):
                original(iterator, loader, *args, **kwargs)
                note(loader)

            return __init__

        def again(original):
            def _reset(iterator, loader, first_iter=False):
                given = original(iterator, loader, first_iter)
                if not first_iter:
                    note(loader)
                return given

            return _reset

        patches.wrap(dataloader._BaseDataLoaderIter, "__init__", begin)
        patches.wrap(dataloader._BaseDataLoaderIter, "_reset", again)

    def _begun(self, loader: Any) -> None:
        samplers = [loader.sampler, loader.batch_sampler, getattr(loader.batch_sampler, "sampler", None)]
        by_epoch = [sampler for sampler in samplers if callable(getattr(sampler, "set_epoch", None))]
        epoch = getattr(by_epoch[0], "epoch", None) if by_epoch else None
        if isinstance(epoch, int) and self._count < PASSES:
            self._count += 1
            self._probe.event("sampler_epoch", epoch=epoch)
