"""What a measure is, in a few words. Each topic declares its own: `MEANINGS` in a file `meanings.py` beside its measures."""

from __future__ import annotations

import functools
import importlib
from fnmatch import fnmatchcase
from pathlib import Path


@functools.cache
def meanings() -> dict[str, str]:
    """By a measure's name, or a pattern of names ("*_spread"): what it is.

    Raises:
        RuntimeError: two topics mean different things by one name.
    """
    found: dict[str, str] = {}
    for file in sorted(Path(__file__).parent.glob("*/meanings.py")):
        declared: dict[str, str] = importlib.import_module(f"{__package__}.{file.parent.name}.meanings").MEANINGS
        if twice := [name for name in declared if found.get(name, declared[name]) != declared[name]]:
            raise RuntimeError(
                f"{file.parent.name} means something else by the measure {twice[0]!r} than another topic does"
            )
        found |= declared
    return found


@functools.cache
def meaning_of(name: str) -> str:
    """What a measure is, in a few words; empty for one that nobody declared. A name of its own goes before a pattern."""
    known = meanings()
    pattern = next((pattern for pattern in known if "*" in pattern and fnmatchcase(name, pattern)), "")
    return known.get(name) or known.get(pattern, "")
