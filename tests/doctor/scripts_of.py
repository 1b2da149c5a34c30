"""Cases: small training scripts, each with a fault and its repair. What is to be found stands in the script itself."""

from __future__ import annotations

import ast
import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "cases"
HERE = "# <- here"
"""Marks the line that the doctor is to name."""


@dataclass(frozen=True)
class Case:
    """One script. Its first argument is `sick` or `repaired`.

    Attributes:
        path: of the script.
        shows: the public report or kind that it shows, by its id; "" where it stands for none.
        found: reasons, as detector/reason, that the sick run must find.
        undecided: reasons that it must name as undecided, being no fault in every script.
        may: what else may be found of the sick run, being true of it as well.
        ranks: processes.
        arguments: after the first.
        steps: of the optimizer after which it is ended; None runs it to its end.
        needs: a package that it imports and that an extra brings; "" where it needs none.
    """

    path: Path
    shows: str
    found: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    ranks: int = 2
    arguments: tuple[str, ...] = ()
    steps: int | None = None
    needs: str = ""

    @property
    def line(self) -> int | None:
        """The line that is to be named; None where the script marks none."""
        lines = self.path.read_text().splitlines()
        return next((number for number, line in enumerate(lines, 1) if line.rstrip().endswith(HERE)), None)


def cases() -> list[Case]:
    """All of them, by name."""
    return [_case(path) for path in sorted(FOLDER.glob("*.py"))]


def _case(path: Path) -> Case:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "CASE":
            said: dict[str, Any] = ast.literal_eval(node.value)
            return Case(path, **{key: tuple(value) if isinstance(value, list) else value for key, value in said.items()})
    raise AssertionError(f"{path.name} has no CASE = {{…}} that says what is to be found")


def skip_without(package: str) -> None:
    """Skip a test whose script imports a package that is missing here. CI installs it: there the script fails instead."""
    if package and importlib.util.find_spec(package) is None and not os.environ.get("CI"):
        pytest.skip(f"no {package}: make setup-frameworks")


def said_of(path: Path, name: str, default: Any) -> Any:
    """What a script says in a constant at its top level."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return ast.literal_eval(node.value)
    return default
