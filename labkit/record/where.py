"""How a place in a program is named to a person."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parent.parent
_TRAVELLED = "<dynamic-code>"  # what cloudpickle calls the file of a function that it carries by value


def short_path(file: str, origin: str = "", start: Path | None = None) -> str:
    """A path to show: relative to the package or to the working folder; a notebook's cell by that name.

    Args:
        file: a frame's file name.
        origin: the file in which the program was written, for a function that travelled by value.
        start: the folder that paths are relative to; None is the working folder.
    """
    if file == _TRAVELLED and origin:
        file = origin
    if "ipykernel_" in file or file.startswith("<"):
        return "notebook cell"
    path = Path(file)
    if path.is_relative_to(_PACKAGE):
        return f"labkit/{path.relative_to(_PACKAGE).as_posix()}"
    start = Path.cwd() if start is None else start
    if path.is_relative_to(start):
        return path.relative_to(start).as_posix()
    return file


def where_written(written: Callable[..., Any] | type | None) -> str:
    """file:line of a function or a class, to point at; empty for what has none, such as a built-in."""
    try:
        if inspect.isclass(written):
            return f"{short_path(inspect.getfile(written))}:{inspect.getsourcelines(written)[1]}"
    except (OSError, TypeError):
        return ""
    code = getattr(written, "__code__", None)
    return f"{short_path(code.co_filename)}:{code.co_firstlineno}" if code else ""
