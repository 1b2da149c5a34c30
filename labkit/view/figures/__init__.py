"""The figures, by name. Each takes one or more records and gives a Picture; drawn from records alone.

A file of this folder declares the figures that it draws: `FIGURES`, from a name to its function.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable

from ...errors import UnknownName
from ..picture import Picture


def figures_of(module: str) -> dict[str, Callable[..., Picture]]:
    """What one file of this folder declares: from a figure's name to the function that draws it."""
    return getattr(importlib.import_module(f"{__name__}.{module}"), "FIGURES", {})


@functools.cache
def every_figure() -> dict[str, Callable[..., Picture]]:
    """What all files of this folder declare.

    Raises:
        RuntimeError: two files declare one name.
    """
    found: dict[str, Callable[..., Picture]] = {}
    for module in pkgutil.iter_modules(__path__):
        declared = figures_of(module.name)
        if twice := sorted(found.keys() & declared.keys()):
            raise RuntimeError(f"{module.name} declares the figure {twice[0]!r}, which another file declares already")
        found |= declared
    return found


def figure(name: str) -> Callable[..., Picture]:
    """The function that draws a figure.

    Raises:
        UnknownName: with the valid names.
    """
    if name not in every_figure():
        raise UnknownName("figure", name, every_figure())
    return every_figure()[name]
