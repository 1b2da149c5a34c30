"""Checkpoints that a script writes with torch.save: where to, over what, and which states are in them."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from typing import Any

from ...record.probe import Probe
from .patches import Patches, called_from

DEPTH = 3
"""Levels of nested mappings in which states are looked for."""


class Saves:
    """torch.save, and the states that are asked for to be saved. *Called on* each rank."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._schedulers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._scalers: weakref.WeakSet[Any] = weakref.WeakSet()

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        import torch
        from torch.amp import grad_scaler
        from torch.optim import lr_scheduler

        note = patches.noting(self._saving)

        def save(original):
            def save(obj, f, *args, **kwargs):
                note(obj, f, called_from())
                return original(obj, f, *args, **kwargs)

            return save

        def kept(known: weakref.WeakSet[Any]) -> Any:
            add = patches.noting(known.add)

            def around(original):
                def __init__(made, *args, **kwargs):
                    original(made, *args, **kwargs)
                    add(made)

                return __init__

            return around

        patches.wrap(torch, "save", save)
        patches.wrap(lr_scheduler.LRScheduler, "__init__", kept(self._schedulers))
        patches.wrap(grad_scaler.GradScaler, "__init__", kept(self._scalers))

    def _saving(self, obj: Any, f: Any, where: str) -> None:
        if not isinstance(f, (str, os.PathLike)):
            return  # into memory: where it goes from there is not seen
        path = os.path.abspath(os.fspath(f))
        states = _states(obj)
        self._probe.event(
            "torch_save",
            path=path,
            over=os.path.exists(path),
            where=where,
            optimizer="optimizer" in states,
            scheduler="scheduler" in states,
            scaler="scaler" in states,
            has_scheduler=len(self._schedulers) > 0,
            has_scaler=any(scaler.is_enabled() for scaler in self._scalers),
        )


def _states(obj: Any, depth: int = DEPTH) -> set[str]:
    """Which states are in what is saved, by the keys that torch gives them."""
    if not isinstance(obj, Mapping):
        return set()
    keys = {key for key in obj if isinstance(key, str)}
    found = set()
    if {"param_groups", "state"} <= keys:
        return {"optimizer"}
    if {"last_epoch", "_step_count"} <= keys or {"num_bad_epochs", "best"} <= keys:
        return {"scheduler"}
    if {"scale", "growth_factor", "_growth_tracker"} <= keys:
        return {"scaler"}
    for value in obj.values() if depth else ():
        found |= _states(value, depth - 1)
    return found
