"""What the source of a script says of how it resumes."""

from __future__ import annotations

import ast
import functools
import re
import sys
from pathlib import Path
from typing import Any

from .patches import is_own

_REDERIVED = re.compile(r"last_epoch\s*=\s*[^-\s]|lambda[^\n]*(start|resume|offset|done)")
_LIBRARIES = ("site-packages", "dist-packages", "/torch/", "/lib/python")


def script_files() -> list[str]:
    """Files of the script's own modules that are loaded."""
    return _files(len(sys.modules))


@functools.lru_cache(maxsize=2)
def _files(modules: int) -> list[str]:
    found = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    main = sys.argv[0] if sys.argv else ""
    files = [*(file for file in found if isinstance(file, str)), main]
    return sorted(
        {str(Path(file)) for file in files if file.endswith(".py") and not is_own(file) and not _is_library(file)}
    )[:64]


def _is_library(file: str) -> bool:
    return any(part in file for part in _LIBRARIES)


@functools.lru_cache(maxsize=128)
def text_of(file: str) -> str:
    """A file of the script; empty where it cannot be read, or is very long."""
    try:
        path = Path(file)
        return path.read_text(errors="replace") if path.stat().st_size < 1_000_000 else ""
    except OSError:
        return ""


def rederives_schedule() -> bool:
    """Whether the script makes schedules that begin elsewhere than at their start, so that their state need not be saved."""
    return any(_REDERIVED.search(text_of(file)) for file in script_files())


@functools.lru_cache(maxsize=128)
def _keys_read(file: str) -> frozenset[str]:
    """Words that a file takes out of mappings: `a["epoch"]`, `a.get("epoch")`, `a.pop("epoch")`."""
    try:
        tree = ast.parse(text_of(file))
    except (SyntaxError, ValueError):
        return frozenset()
    return frozenset(word for node in ast.walk(tree) for word in _word_of(node))


def _word_of(node: Any) -> list[str]:
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        key: Any = node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "pop"):
        key = node.args[0] if node.args else None
    else:
        return []
    return [key.value] if isinstance(key, ast.Constant) and isinstance(key.value, str) else []


def keys_read() -> frozenset[str]:
    """Words that the script takes out of mappings, wherever it does."""
    return frozenset().union(*(_keys_read(file) for file in script_files()))
