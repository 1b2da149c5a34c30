"""The doctor: labkit's detectors on a training script that labkit did not write, unchanged.

`labkit doctor SCRIPT` on the command line; `with labkit.doctor.watch() as seen:` around a block of a program or a notebook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["watch"]

if TYPE_CHECKING:
    from .inside import watch


def __getattr__(name: str) -> Any:
    """Load the watch when it is first used: `labkit list` needs none of it."""
    if name == "watch":
        from .inside import watch

        return watch
    raise AttributeError(f"module 'labkit.doctor' has no attribute {name!r}; it has: {', '.join(__all__)}")
