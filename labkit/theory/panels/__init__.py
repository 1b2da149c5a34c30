"""A panel for each lab, and some beside: what may be moved, and the curves that follow. The formulas are its parent's."""

from __future__ import annotations

import importlib
import pkgutil

from ...errors import UnknownName
from ..panel import Panel


def named(name: str) -> Panel:
    """The panel of a file here.

    Raises:
        UnknownName: with the files that there are.
    """
    files = [module.name for module in pkgutil.iter_modules(__path__)]
    if name not in files:
        raise UnknownName("panel", name, files)
    return importlib.import_module(f"{__name__}.{name}").PANEL
