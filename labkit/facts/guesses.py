"""The answers to expect before a run, and what to say to each: read by the lesson and by its deck, which share them."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ..errors import UnknownName, UsageError
from .shipped import data_folder

_BLOCK = re.compile(r"^:::\{expects\}[ ]*(?P<answer>.+)\n(?P<body>(?:(?!:::).*\n)*):::[ ]*$", re.MULTILINE)
_OPTION = re.compile(r"^:(guess|if):[ ]*(.+)$", re.MULTILINE)
_OPERATORS: dict[type, Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}
NEAR = 0.02
"""A guess stands for an answer of one number if it lies within this share of it."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """An answer that people give.

    Attributes:
        answer: as they say it.
        reply: what to say to it, in Markdown.
        so_if: the condition under which it would be right, as what follows an "if"; empty where no number stands for it.
        low, high: formulas of the guesses that stand for it; empty where none does.
    """

    answer: str
    reply: str
    so_if: str = ""
    low: str = ""
    high: str = ""

    def is_meant_by(self, guess: float, values: Mapping[str, float]) -> bool:
        """Whether a guess stands for this answer.

        Args:
            values: what the formulas name: parameters of the lesson.

        Raises:
            UnknownName: a formula names a value that is not given.
        """
        if not self.low:
            return False
        low = value_of(self.low, values)
        high = value_of(self.high, values) if self.high else low
        room = NEAR * abs(low) + 1e-9 if not self.high else 0.0
        return low - room <= guess <= high + room


def markdown_of(lesson: str) -> str:
    """The answers to expect in one lesson, as Markdown.

    Args:
        lesson: the name of its notebook or its number: "03_duplicate_data", "03".

    Raises:
        UnknownName: with the lessons that have some.
    """
    files = {path.stem: path for path in sorted((data_folder() / "guesses").glob("*.md"))}
    found = [path for name, path in files.items() if lesson in (name, name.split("_")[0])]
    if not found:
        raise UnknownName("lesson with answers to expect", lesson, files)
    return found[0].read_text(encoding="utf-8")


def expected_in(lesson: str) -> list[Expected]:
    """The answers to expect in one lesson, in order. See `markdown_of`."""
    return list(_read(markdown_of(lesson)))


def _read(text: str) -> Iterable[Expected]:
    for block in _BLOCK.finditer(text):
        options = dict(_OPTION.findall(block["body"]))
        low, _, high = options.get("guess", "").partition(" to ")
        reply = " ".join(_OPTION.sub("", block["body"]).split())
        yield Expected(answer=block["answer"], reply=reply, so_if=options.get("if", ""), low=low.strip(), high=high.strip())


def value_of(formula: str, values: Mapping[str, float]) -> float:
    """A formula of numbers, names and + - * / %, worked out.

    >>> value_of("ranks * batch - 1", {"ranks": 4, "batch": 32})
    127

    Raises:
        UnknownName: it names a value that is not given.
        UsageError: it holds something else.
    """

    def of(node: ast.AST) -> float:
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](of(node.left), of(node.right))
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return node.value
        if isinstance(node, ast.Name):
            if node.id not in values:
                raise UnknownName("value of this lesson", node.id, values)
            return values[node.id]
        raise UsageError(f"a guess is a formula of numbers, names and + - * / %; given {formula!r}")

    return of(ast.parse(formula, mode="eval").body)
