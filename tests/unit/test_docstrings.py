"""The examples in docstrings run, and say what comes out. What trains or reads says at its top which shapes it handles."""

import ast
import doctest
import importlib
import re
from pathlib import Path

import pytest

import labkit

PACKAGE = Path(labkit.__file__).parent
ALL = {".".join(("labkit", *path.relative_to(PACKAGE).with_suffix("").parts)): path for path in PACKAGE.rglob("*.py")}
WITH_EXAMPLES = sorted(name for name, path in ALL.items() if ">>>" in path.read_text())


def failures(module) -> tuple[int, int]:
    """(examples that fail, examples)."""
    return tuple(doctest.testmod(module, optionflags=doctest.ELLIPSIS))


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_of_a_module_run(name):
    failed, tried = failures(importlib.import_module(name))
    assert tried and not failed


def test_formulas_words_and_quantities_have_examples():
    formulas = {f"labkit.theory.{path.stem}" for path in (PACKAGE / "theory").glob("*.py") if path.stem != "__init__"}
    expected = formulas - {"labkit.theory.departures"} | {"labkit.words", "labkit.record.quantity", "labkit.detect.spread"}
    assert expected <= set(WITH_EXAMPLES)


def test_an_example_that_lies_is_noticed(tmp_path, monkeypatch, capsys):
    (tmp_path / "lies.py").write_text('"""\n>>> 1 + 1\n3\n"""\n')
    monkeypatch.syspath_prepend(tmp_path)
    assert failures(importlib.import_module("lies")) == (1, 1)


NO_PROGRAMS = ("exercise", "help")  # a checker; texts of hints and solutions


def test_what_trains_or_loads_names_its_shapes():
    trains = re.compile(r"DataLoader\(|\.backward\(|\bDataset\):|nn\.Module\):")
    read = {
        path for room in ("labs", "workloads") for path in (PACKAGE / room).rglob("*.py") if path.stem not in NO_PROGRAMS
    }
    found = {str(path.relative_to(PACKAGE)): path.read_text() for path in read if trains.search(path.read_text())}
    assert {"labs/duplicate_data/programs.py", "labs/precision/loops.py", "workloads/loop.py"} <= set(found)
    silent = [name for name, text in found.items() if "Shape" not in (ast.get_docstring(ast.parse(text)) or "")]
    assert not silent
