"""Warnings that a library attributes to its caller: they name the script's line, as they would without the doctor."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from .patches import Patches, is_own


class Warned:
    """`warnings.showwarning`: a call of a library goes through labkit here, and a warning would name labkit's line."""

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""

        def around(original):
            def showwarning(message, category, filename, lineno, file=None, line=None):
                if is_own(filename):
                    filename, lineno = _caller_of(filename, lineno) or (filename, lineno)
                return original(message, category, filename, lineno, file, line)

            return showwarning

        patches.wrap(warnings, "showwarning", around)


def _caller_of(filename: str, lineno: int) -> tuple[str, int] | None:
    """Who called what stands at a line of labkit; None where nobody on the stack is there."""
    frame: Any = sys._getframe(1)
    reached = False
    while frame is not None:
        reached = reached or (frame.f_code.co_filename == filename and frame.f_lineno == lineno)
        if reached and not is_own(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None
