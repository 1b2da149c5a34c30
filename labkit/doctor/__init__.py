"""The doctor: labkit's detectors on a training script that labkit did not write, unchanged.

`labkit doctor SCRIPT` on the command line; `labkit.doctor.examine("train.py")` from Python; around a block of a program or a
notebook `with labkit.doctor.watch() as seen:`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "check": "lessons",
    "examine": "diagnosis",
    "example": "lessons",
    "invariants": "lessons",
    "repair": "lessons",
    "watch": "inside",
}

if TYPE_CHECKING:
    from .diagnosis import examine
    from .inside import watch
    from .lessons import check, example, invariants, repair

__all__ = ["check", "examine", "example", "invariants", "repair", "watch"]


def __getattr__(name: str) -> Any:
    """Load what is asked for when it is first used: `labkit list` needs none of it."""
    if name in _PUBLIC:
        return getattr(importlib.import_module(f"{__name__}.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module 'labkit.doctor' has no attribute {name!r}; it has: {', '.join(__all__)}")
