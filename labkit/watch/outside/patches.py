"""Calls of a library replaced by ones that note what is done, and put back as they were."""

from __future__ import annotations

import functools
import sys
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


LIBRARIES = ("/torch/", "/site-packages/", "/dist-packages/", "<frozen", "/contextlib.py", "/functools.py", "/runpy.py")


def is_own(file: str) -> bool:
    """Whether a frame's file is labkit's."""
    return file.startswith(_PACKAGE)


def called_from(depth: int = 2) -> str:
    """file:line of the nearest caller that is the script's own code; empty where there is none."""
    frame: Any = sys._getframe(depth)
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_own(file) and not any(part in file for part in LIBRARIES):
            return f"{short_path(file)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
