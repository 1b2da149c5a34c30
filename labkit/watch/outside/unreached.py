"""Calls of a training loop that stand behind a return, a break or a continue, and so are never made."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

CALLS = ("backward", "zero_grad", "clip_grad_norm_", "clip_grad_value_", "unscale_", "set_epoch", "all_reduce")
"""Calls that a training is made of, whatever they are of."""

_OF_TRAINING = re.compile(r"opt|sched|scaler|ema|swa", re.I)


@dataclass(frozen=True)
class Unreached:
    """A call that is never made, and the line that ends its block before."""

    file: str
    line: int
    call: str
    after: int
    ends_with: str


def unreached(trees: Mapping[str, ast.Module]) -> list[Unreached]:
    """All of a script's, by the sources of its own modules; the first of each block."""
    found = []
    for file, tree in trees.items():
        for node in ast.walk(tree):
            for block in _blocks(node):
                found += list(_behind(file, block))
    return sorted(found, key=lambda one: (one.file, one.line))


def _blocks(node: ast.AST) -> list[list[ast.stmt]]:
    blocks = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
    return [block for block in blocks if isinstance(block, list)]


def _behind(file: str, block: list[ast.stmt]) -> Iterator[Unreached]:
    for at, statement in enumerate(block):
        if isinstance(statement, (ast.Return, ast.Break, ast.Continue)):
            for later in block[at + 1 :]:
                call = _training_call(later)
                if call is not None:
                    line, name = call
                    yield Unreached(file, line, name, statement.lineno, type(statement).__name__.lower())
                    return
            return


def _training_call(statement: ast.stmt) -> tuple[int, str] | None:
    """(line, call) of the first call in a statement that a training is made of; not within a function that it defines."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return None
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name, of = node.func.attr, ast.unparse(node.func.value)
            if name in CALLS or (name in ("step", "update", "update_parameters") and _OF_TRAINING.search(of)):
                return node.lineno, f"{of}.{name}()"
    return None
