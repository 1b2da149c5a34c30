"""What it means: pure functions from a record to a verdict, one file a question, found by their files."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from types import ModuleType

from ..errors import UnknownName
from ..record.schema import Record
from .under_load import said_with
from .verdict import Verdict, for_script

Detector = Callable[[Record], Verdict]
_NOT_DETECTORS = ("verdict", "cost", "explanations", "over_epochs", "under_load")


def names() -> list[str]:
    """The names of all detectors."""
    return [m.name.replace("_", "-") for m in pkgutil.iter_modules(__path__) if m.name not in _NOT_DETECTORS]


def detector(name: str) -> Detector:
    """A detector by its name.

    Raises:
        UnknownName: with the valid names.
    """
    if name not in names():
        raise UnknownName("detector", name, names())
    return _module(name).detect


def is_timed(name: str) -> bool:
    """Whether a detector judges times, which noise and other programs change."""
    return getattr(_module(name), "TIMED", False)


def ask(name: str, record: Record) -> Verdict:
    """A detector's answer on a record; what it advises suits whoever wrote it, a lab or a script.

    Raises:
        UnknownName: with the valid names.
    """
    verdict = detector(name)(record)
    verdict = said_with(verdict, record) if is_timed(name) else verdict
    return verdict if record.lab else for_script(verdict)


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
