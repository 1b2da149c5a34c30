"""Where ranks stand: tracebacks of those that failed, stacks of those that hang."""

from __future__ import annotations

import re
import sys
import traceback
from pathlib import Path
from types import TracebackType

from ..record.where import short_path

_PACKAGE = Path(__file__).resolve().parent.parent
_MACHINERY = ("ranks", "record")
_STDLIB = str(Path(traceback.__file__).parent)
_WRAPPERS = ("wrapper", "_call_impl", "_wrapped_call_impl", "inner", "decorate_context")
_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$')


def is_program(file: str) -> bool:
    """Whether a frame belongs to the program under study, not to torch, the standard library or labkit's machinery."""
    path = Path(file)
    if path.is_relative_to(_PACKAGE):
        return path.relative_to(_PACKAGE).parts[0] not in _MACHINERY
    if "site-packages" in file or "dist-packages" in file or file.startswith("<frozen"):
        return False
    return not file.startswith(_STDLIB)


def where_raised(error_traceback: TracebackType | None, origin: str = "") -> tuple[str | None, str | None]:
    """From a traceback: file:line of the innermost frame of the program, and the name of what it called there."""
    frames = traceback.extract_tb(error_traceback)
    inside = [i for i, frame in enumerate(frames) if is_program(frame.filename)]
    if not inside:
        return None, None
    called = [frame.name for frame in frames[inside[-1] + 1 :] if frame.name not in _WRAPPERS]
    frame = frames[inside[-1]]
    return f"{short_path(frame.filename, origin)}:{frame.lineno}", called[0] if called else None


def waits_in(dump: str, origin: str = "") -> tuple[str, str | None]:
    """From faulthandler's dump of all threads: what the rank's main thread is in, and the program's line.

    Returns:
        (function, file:line): the innermost function by name, such as "all_reduce", and where the program called it.
    """
    blocks = re.split(r"(?m)^(?=Current thread |Thread 0x)", dump)
    main = next((b for b in blocks if "ranks/entry.py" in b.replace("\\", "/") and "in enter" in b), None)
    if main is None:
        return "unknown", None
    frames = [m for line in main.splitlines() if (m := _FRAME.match(line))]
    if not frames:
        return "unknown", None
    program = next((m for m in frames if is_program(m["file"])), None)
    where = f"{short_path(program['file'], origin)}:{program['line']}" if program else None
    function = next((m["function"] for m in frames if m["function"] not in _WRAPPERS), frames[0]["function"])
    return function, where


def python_version() -> str:
    """The interpreter's version, as records carry it."""
    return ".".join(map(str, sys.version_info[:3]))
