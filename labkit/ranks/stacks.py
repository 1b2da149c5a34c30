"""Where ranks stand: tracebacks of those that failed, stacks of those that hang."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from types import TracebackType

from ..record.where import short_path

_PACKAGE = Path(__file__).resolve().parent.parent
_MACHINERY = ("ranks", "record")
_STDLIB = str(Path(traceback.__file__).parent)
_WRAPPERS = ("wrapper", "_call_impl", "_wrapped_call_impl", "inner", "decorate_context")
_LABKIT_FRAME = re.compile(r"^  File .*ranks/(entry|join)\.py\", line \d+ in (enter|run_program|run_joined)$", re.MULTILINE)
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
    """From faulthandler's dump of all threads: where the program of this rank stands.

    Returns:
        (function, file:line): what the program called there, such as "all_reduce", or the program's own function if that
        is C code, and the line of the program; None for the line while no program runs.
    """
    blocks = re.split(r"(?m)^(?=Current thread |Thread 0x)", dump)
    main = next((block for block in blocks if _LABKIT_FRAME.search(block)), "")
    entered = _LABKIT_FRAME.search(main)
    if entered is None:
        return "unknown", None
    # innermost first; below labkit's own frame lies what called labkit
    inside = main[: entered.start()]
    frames = [m for line in inside.splitlines() if (m := _FRAME.match(line))]
    program = next((i for i, frame in enumerate(frames) if is_program(frame["file"])), None)
    if program is None:
        return (frames[0]["function"] if frames else "labkit"), None
    called = [frame["function"] for frame in frames[:program] if frame["function"] not in _WRAPPERS]
    where = f"{short_path(frames[program]['file'], origin)}:{frames[program]['line']}"
    return (called[-1] if called else frames[program]["function"]), where
