"""The eyes: what hooks into torch, or reads the machine, while a program runs, and writes through a probe.

There is one watcher for each thing that is watched. Labs and scripts of your own use the same:

| watcher | sees |
|---|---|
| `watch_loader` | which samples are read, and how long each batch is waited for |
| `watch_ddp` | passes of a DDP module, when each bucket is ready and reduced, and what `no_sync` leaves out |
| `watch_reductions` | the reductions of a DDP module alone |
| `watch_updates` | that any optimizer of the process steps |
| `watch_optimizer` | which gradients an optimizer gets, and what its steps change |
| `watch_scaler` | that a GradScaler is asked for a step, and its scale |
| `watch_precision` | optimizer and scaler together, and the format in which forward passes end |
| `watch_collectives` | every collective that is dispatched: its kind, bytes and group |
| `MemoryWatch` | what a program keeps, by category, at instants |
| `watch_save`, `watch_load` | checkpoints: how long training stands still, how large they are, what a start finds |
| `tell_known_parameters`, `tell_state`, … | what a program knows of itself, under the names that questions ask for |

`PassWatch` and `BucketHook` are what these are made of: a module's passes, and the communication hook of DDP. What each name
means stands in docs/records.md. torch is loaded when a watcher is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "watch_loader": "loader",
    "watch_ddp": "ddp",
    "watch_reductions": "reductions",
    "BucketHook": "reductions",
    "watch_updates": "optimizer",
    "watch_optimizer": "optimizer",
    "tell_known_parameters": "optimizer",
    "watch_scaler": "scaler",
    "watch_precision": "precision",
    "watch_collectives": "traffic",
    "tell_collectives": "traffic",
    "MemoryWatch": "memory",
    "PassHooks": "passes",
    "PassWatch": "passes",
    "watch_save": "saves",
    "watch_load": "saves",
    "tell_save": "saves",
    "tell_failed_save": "saves",
    "tell_load": "saves",
    "tell_state": "saves",
}

__all__ = [*_PUBLIC]  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from .ddp import watch_ddp
    from .loader import watch_loader
    from .memory import MemoryWatch
    from .optimizer import tell_known_parameters, watch_optimizer, watch_updates
    from .passes import PassHooks, PassWatch
    from .precision import watch_precision
    from .reductions import BucketHook, watch_reductions
    from .saves import tell_failed_save, tell_load, tell_save, tell_state, watch_load, watch_save
    from .scaler import watch_scaler
    from .traffic import tell_collectives, watch_collectives


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(importlib.import_module(f".{_PUBLIC[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'labkit.watch' has no attribute {name!r}; its names: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
