"""Whether a script's source divides what it reduced over ranks by their number."""

from __future__ import annotations

import ast
import functools
import linecache

RANKS = ("world", "num_replicas", "num_processes", "nprocs", "n_ranks", "num_ranks", "n_gpus", "num_gpus")
"""Parts of names that stand for how many ranks there are."""


@functools.lru_cache(maxsize=64)
def is_averaged(file: str, line: int) -> bool:
    """Whether the call at this line reduces something that the same function then divides by the number of ranks."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return False
    scope = _scope(tree, line)
    calls = [
        node for node in ast.walk(scope) if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    call = next((node for node in calls if isinstance(node.func, (ast.Attribute, ast.Name))), None)
    if call is None:
        return False
    names = _names(call) - {"dist", "torch", "distributed"}
    gathers = "gather" in (call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id)  # pyright: ignore
    return any(_averages(node, names, gathers) for node in ast.walk(scope))


def _scope(tree: ast.Module, line: int) -> ast.AST:
    """The innermost function around a line, or the whole module."""
    found: ast.AST = tree
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno <= line <= (node.end_lineno or 0):
            found = node
    return found


def _averages(node: ast.AST, names: set[str], gathers: bool) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return bool(_names(node.left) & names) and _is_ranks(node.right, names)
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
        return bool(_names(node.target) & names) and _is_ranks(node.value, names)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not _names(node) & names:
        return False
    if node.func.attr == "mean":
        return gathers
    return node.func.attr in ("div_", "div") and any(_is_ranks(one, names) for one in node.args)


def _is_ranks(node: ast.AST, names: set[str]) -> bool:
    """Whether an expression stands for the number of ranks, or of what was gathered of them."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
        return bool(_names(node) & names)
    said = [*_names(node), *(one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute))]
    return any(part in name.lower() for name in said for part in RANKS) or said == ["W"]


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
