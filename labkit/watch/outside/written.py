"""What the script's source says that a run cannot: loops around a line, and rows that are cut by rank. Read, never run."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from typing import Any

from .source_of import script_files, text_of

_RANK = re.compile(r"(^|_)rank$|^get_rank$|^process_index$|^local_process_index$", re.I)
_RANKS = re.compile(r"world|num_replicas|num_processes|n_?proc|n_?ranks|num_ranks|^ws?$", re.I)
_CUTS = ("chunk", "tensor_split", "array_split", "split")


@functools.lru_cache(maxsize=128)
def tree_of(file: str) -> ast.Module:
    """A file of the script, parsed; an empty module where it cannot be read."""
    try:
        return ast.parse(text_of(file))
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])


def nodes() -> Iterator[tuple[str, ast.AST]]:
    """(file, node) of all of the script's own modules."""
    for file in script_files():
        for node in ast.walk(tree_of(file)):
            yield file, node


def loops_around(file: str, line: int) -> list[tuple[int, int]]:
    """(first, last line) of each loop that runs a line again and again, the innermost first.

    A loop that is over one thing only, and one whose header the line is, runs it once.
    """
    found = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree_of(file))
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While))
        and node.body[0].lineno <= line <= (node.body[-1].end_lineno or line)
        and not (isinstance(node, ast.For) and _is_once(node.iter))
    ]
    return sorted(found, reverse=True)


def _is_once(over: ast.expr) -> bool:
    if isinstance(over, ast.Call) and getattr(over.func, "id", "") == "range":
        return len(over.args) == 1 and isinstance(over.args[0], ast.Constant) and over.args[0].value == 1
    return isinstance(over, (ast.List, ast.Tuple)) and len(over.elts) == 1


def calls(name: str) -> bool:
    """Whether the script calls, or passes on, something of this name."""
    return any(getattr(node, "attr", getattr(node, "id", "")) == name for _, node in nodes())


def assigns(attribute: str) -> bool:
    """Whether the script assigns to an attribute of this name, of anything."""
    return any(
        isinstance(node, ast.Attribute) and node.attr == attribute and isinstance(node.ctx, ast.Store) for _, node in nodes()
    )


def store_of_rate() -> tuple[str, int] | None:
    """(file, line) of the first place where the script assigns to `….lr`, `….learning_rate` or `….defaults["lr"]`."""
    return next(((file, node.lineno) for file, node in nodes() if _stores_rate(node)), None)  # pyright: ignore


def _stores_rate(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        holder = getattr(node.value, "attr", getattr(node.value, "id", ""))
        return node.attr in ("lr", "learning_rate") and not (holder == "self" or "arg" in holder or "conf" in holder)
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return getattr(node.value, "attr", "") == "defaults" and getattr(node.slice, "value", None) == "lr"
    return False


def cut_by_rank() -> tuple[str, int]:
    """(file, line) of the first place where the script takes a rank's part of something; ("", 0) without one."""
    return next(((file, getattr(node, "lineno", 0)) for file, node in nodes() if _cuts(node)), ("", 0))


def _cuts(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return _cut_slice(node)
    if isinstance(node, ast.Call):
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if called == "shard":
            return any(_mentions(_RANK, one) for one in given)
        if called in ("range", "islice", "slice"):
            return len(given) > 2 and any(_mentions(_RANK, one) for one in given) and _mentions(_RANKS, given[-1])
    if isinstance(node, ast.Compare) and isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Mod):
        return _mentions(_RANKS, node.left.right) and any(_mentions(_RANK, one) for one in node.comparators)
    return False


def _cut_slice(node: ast.Subscript) -> bool:
    part: Any = node.slice
    if isinstance(part, ast.Slice):
        lower, upper, step = part.lower, part.upper, part.step
        by_step = step is not None and _mentions(_RANK, lower) and _mentions(_RANKS, step)
        return by_step or (lower is not None and upper is not None and _mentions(_RANK, lower) and _mentions(_RANK, upper))
    called = getattr(getattr(node.value, "func", None), "attr", getattr(getattr(node.value, "func", None), "id", ""))
    return called in _CUTS and _mentions(_RANK, part)


def _mentions(what: re.Pattern[str], node: ast.AST | None) -> bool:
    if node is None:
        return False
    named = (getattr(one, "attr", getattr(one, "id", "")) for one in ast.walk(node))
    return any(name and what.search(name) for name in named)
