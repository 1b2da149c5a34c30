"""Calls of a library replaced by ones that note what is done, and put back as they were."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...record.where import short_path

_PACKAGE = str(Path(__file__).resolve().parents[2])


class Patches:
    """What was replaced, so that it can be put back, in the reverse order."""

    def __init__(self) -> None:
        self._kept: list[tuple[Any, str, Any, bool]] = []
        self.faults: list[str] = []

    def wrap(self, owner: Any, name: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Replace `owner.name` by `around(what it was)`. Nothing happens where the library has no such name.

        `around` gets the original and returns what takes its place; it looks like the original to who inspects it.
        """
        own = vars(owner).get(name)
        original = own if own is not None else getattr(owner, name, None)
        if original is None:
            return
        plain = original.__func__ if isinstance(original, (staticmethod, classmethod)) else original
        made = functools.wraps(plain)(around(plain))
        put: Any = type(original)(made) if isinstance(original, (staticmethod, classmethod)) else made
        self._kept.append((owner, name, original, own is not None))
        setattr(owner, name, put)

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Replace a second name of what was wrapped elsewhere."""
        self._kept.append((owner, name, getattr(owner, name), True))
        setattr(owner, name, value)

    def noting(self, note: Callable[..., None]) -> Callable[..., None]:
        """`note`, but an error in it is kept and not raised: what watches must not end what it watches."""

        @functools.wraps(note)
        def noted(*args: Any, **kwargs: Any) -> None:
            try:
                note(*args, **kwargs)
            except Exception:
                if len(self.faults) < 5:
                    self.faults.append(traceback.format_exc(limit=-3))

        return noted

    def undo(self) -> None:
        """Put everything back."""
        while self._kept:
            owner, name, original, was_own = self._kept.pop()
            if was_own:
                setattr(owner, name, original)
            else:
                delattr(owner, name)


_STDLIB = sysconfig.get_paths()["stdlib"]
_INSTALLED = ("/site-packages/", "/dist-packages/")


def _torch() -> str:
    """The folder of torch: a build of one's own lies outside of where packages are installed."""
    spec = importlib.util.find_spec("torch")
    return str(Path(spec.origin).parent) + os.sep if spec is not None and spec.origin else "/torch/"


_LIBRARIES = (_torch(), _STDLIB + os.sep, _PACKAGE + os.sep)


def is_own(file: str) -> bool:
    """Whether a frame's file is labkit's."""
    return file.startswith(_PACKAGE)


def is_library(file: str) -> bool:
    """Whether a frame's file is of an installed package, the standard library or labkit, or made at run time."""
    return file.startswith((*_LIBRARIES, "<frozen", "<string>")) or any(part in file for part in _INSTALLED)


def called_from(depth: int = 2) -> str:
    """file:line of the nearest caller that is the script's own code; empty where there is none."""
    frame: Any = sys._getframe(depth)
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_library(file):
            return f"{short_path(file)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def called_through(depth: int = 2) -> list[str]:
    """The installed packages between here and the script's own code, without torch, the nearest first."""
    frame: Any = sys._getframe(depth)
    packages: list[str] = []
    while frame is not None and is_library(file := frame.f_code.co_filename):
        part = next((part for part in _INSTALLED if part in file), None)
        if part is not None and (name := file.rpartition(part)[2].split("/")[0]) not in ("torch", *packages):
            packages.append(name)
        frame = frame.f_back
    return packages
