"""A guess is settled by one quantity: that of the notebook stands in the deck too."""

import json
import re

import build_decks
import pytest
from lab_cases import of_lesson

from labkit.facts.guesses import expected_in

NOTEBOOKS = build_decks.HERE.parent / "notebooks"


def revealed_by(notebook: str) -> set[str]:
    """The measures that a lesson's cells read to settle the guess."""
    cells = json.loads((NOTEBOOKS / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return {name for source in sources if ".reveal(" in source for name in re.findall(r'\["(\w+)"\]', source)}


def said_in_a_line(deck: str) -> set[str]:
    """The measures that a deck has in its sentences."""
    text = (build_decks.HERE / f"{deck}.md").read_text(encoding="utf-8")
    return {name for shown in re.findall(r"\{measure\}`([^`]+)`", text) for name in re.findall(r"\.(\w+)", shown)}


LESSONS = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))
IN_A_LINE = [name for name in LESSONS if not of_lesson(name).guess_settled_by_figure]


def test_each_lesson_settles_its_guess_with_one_measure():
    assert LESSONS
    assert {name: len(revealed_by(name)) for name in IN_A_LINE} == dict.fromkeys(IN_A_LINE, 1)


@pytest.mark.parametrize("name", IN_A_LINE)
def test_the_deck_settles_the_guess_with_the_measure_of_the_notebook(name):
    assert revealed_by(name) <= said_in_a_line(name)


@pytest.mark.parametrize("name", LESSONS)
def test_the_deck_expects_the_answers_that_the_lesson_expects(name):
    """One text for both: the deck takes them from the file that `lesson.answers_of` reads."""
    deck = (build_decks.HERE / f"{name}.md").read_text(encoding="utf-8")
    guess = deck.partition("\n## Your guess\n")[2].partition("\n## ")[0]
    assert f":::{{expected}} {name}\n:::" in guess and "{expects}" not in guess
    assert expected_in(name)
