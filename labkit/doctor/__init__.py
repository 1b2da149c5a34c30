"""The doctor: labkit's detectors on a training script that labkit did not write, unchanged.

`labkit doctor SCRIPT` on the command line; `labkit.doctor.examine("train.py")` from Python; around a block of a program or a
notebook `with labkit.doctor.watch() as seen:`; in a Trainer of transformers or Lightning `callbacks=[for_trainer()]`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "check": "lessons",
    "examine": "diagnosis",
    "example": "lessons",
    "for_lightning": "callbacks",
    "for_trainer": "callbacks",
    "invariants": "lessons",
    "repair": "lessons",
    "watch": "inside",
}

if TYPE_CHECKING:
    from .callbacks import for_lightning, for_trainer
    from .diagnosis import examine
    from .inside import watch
    from .lessons import check, example, invariants, repair

__all__ = ["check", "examine", "example", "for_lightning", "for_trainer", "invariants", "repair", "watch"]


def __getattr__(name: str) -> Any:
    """Load what is asked for when it is first used: `labkit list` needs none of it."""
    if name in _PUBLIC:
        return getattr(importlib.import_module(f"{__name__}.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module 'labkit.doctor' has no attribute {name!r}; it has: {', '.join(__all__)}")
