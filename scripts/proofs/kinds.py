"""The kinds of proof, and how each is checked. A proof is `kind:what`; a function a kind says what is wrong with it."""

import ast
import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from .arithmetic import constants, holds
from .claims import numbers


@dataclass(frozen=True)
class Place:
    """Where a sentence stands: the repository, the lesson's notebook if there is one, and the text of its documents."""

    root: Path
    notebook: Path | None
    text: str

    @cached_property
    def cells(self) -> dict[str, dict]:
        """The notebook's code cells by their id."""
        found = json.loads(self.notebook.read_text(encoding="utf-8"))["cells"] if self.notebook else []
        return {cell["id"]: cell for cell in found if cell["cell_type"] == "code"}

    @cached_property
    def sources(self) -> str:
        """Where addresses are cited: the documents, and what data/ says of its own sources."""
        data = [path for path in sorted((self.root / "data").rglob("*")) if path.suffix in (".csv", ".toml", ".md")]
        return "\n".join([self.text, *(path.read_text(encoding="utf-8") for path in data)])


@cache
def _names(path: Path) -> set[str]:
    """What a Python file defines: functions, classes and their methods, and names that are assigned."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def _named(what: str, text: str, place: Place) -> str:
    path, _, name = what.partition("::")
    name = name.split("[")[0].split("::")[-1].split(".")[-1]
    if not (place.root / path).is_file():
        return f"there is no file {path}"
    return "" if name in _names(place.root / path) else f"{path} defines no {name or 'nothing'}"


def _test(what: str, text: str, place: Place) -> str:
    name = what.split("[")[0].split("::")[-1]
    if not what.startswith("tests/") or not name.startswith("test_"):
        return f"{what} is no test: tests/…/test_x.py::test_name"
    return _named(what, text, place)


def _claim(what: str, text: str, place: Place) -> str:
    known = tomllib.loads((place.root / "data" / "claims.toml").read_text(encoding="utf-8"))
    return "" if what in known else f"data/claims.toml has no claim {what}"


def _cell(what: str, text: str, place: Place) -> str:
    return "" if what in place.cells else f"the lesson has no code cell {what}"


def _assert(what: str, text: str, place: Place) -> str:
    if problem := _cell(what, text, place):
        return problem
    tree = ast.parse("".join(place.cells[what]["source"]))
    return "" if any(isinstance(node, ast.Assert) for node in ast.walk(tree)) else f"cell {what} asserts nothing"


def printed_by(cell: dict) -> list[float]:
    """The numbers in a code cell's stored outputs."""
    said = []
    for output in cell["outputs"]:
        said.append("".join(output.get("text", "")))
        data = output.get("data", {})
        said += ["".join(data[kind]) for kind in ("text/plain", "text/markdown") if kind in data]
        page = re.sub(r"(?s)<style.*?</style>|<[^>]+>", " ", "".join(data.get("text/html", "")))
        said.append(page)
    return numbers("\n".join(said))


def _printed(what: str, text: str, place: Place) -> str:
    if problem := _cell(what, text, place):
        return problem
    stored = printed_by(place.cells[what])
    absent = [one for one in numbers(text) if not any(round(other, _decimals(one)) == one for other in stored)]
    if not numbers(text):
        return "the sentence holds no number that could be printed"
    return f"cell {what} does not print {', '.join(f'{one:g}' for one in absent)}" if absent else ""


def _decimals(number: float) -> int:
    return len(f"{number:.12g}".partition(".")[2]) if "e" not in f"{number:.12g}" else 12


def _sum(what: str, text: str, place: Place) -> str:
    try:
        right = holds(what)
    except (ValueError, SyntaxError, TypeError, ArithmeticError) as error:
        return f"{what} cannot be computed: {error}"
    if not right:
        return f"{what} does not hold"
    said = set(numbers(text))
    return "" if not said or said & constants(what) else f"{what} computes none of the sentence's numbers"


def _source(what: str, text: str, place: Place) -> str:
    address, _, says = what.partition(" — ")
    if not address.startswith("https://") or not says:
        return f"{what} is no source: https://… — what it says"
    if address not in place.sources:
        return f"{address} is cited neither in the text nor in data/"
    said = set(numbers(text))
    return "" if not said or said & set(numbers(says)) else f"{address} is said to give none of the sentence's numbers"


def _text(what: str, text: str, place: Place) -> str:
    path, _, words = what.partition("::")
    if not words or not (place.root / path).is_file():
        return f"{what} is no text: path::words that stand in it"
    there = " ".join((place.root / path).read_text(encoding="utf-8").split())
    return "" if " ".join(words.split()) in there else f"{path} does not say: {words}"


def _definition(what: str, text: str, place: Place) -> str:
    return ""


KINDS: dict[str, Callable[[str, str, Place], str]] = {
    "test": _test,  # tests/…/test_x.py::test_name: a test that fails if the sentence is wrong
    "claim": _claim,  # ID: an entry of data/claims.toml, which a test recomputes
    "assert": _assert,  # CELL: a code cell of the lesson, by its id, that asserts it
    "printed": _printed,  # CELL: each number of the sentence stands in the stored output of that cell
    "cell": _cell,  # CELL: the sentence says what that code cell does
    "code": _named,  # path.py::name: the sentence says what that code does
    "text": _text,  # path::words: a file says so in these words, such as a setting
    "sum": _sum,  # EXPRESSION: arithmetic that is true and holds a number of the sentence
    "source": _source,  # https://… — what it says there: somebody else's figure or finding, cited in the text or in data/
    "definition": _definition,  # a convention, a question, an instruction or a picture's legend: claims nothing of the world
}


def complaint(proof: str, text: str, place: Place) -> str:
    """What is wrong with a proof of a sentence; an empty string where it holds."""
    kind, _, what = proof.partition(":")
    if kind not in KINDS:
        return f"{proof or 'an empty proof'} is of no known kind: {', '.join(KINDS)}"
    return KINDS[kind](what.strip(), text, place)
