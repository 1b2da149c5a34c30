"""The instructor's plans add up, and agree with the decks and the labs."""

import re
from pathlib import Path

import build_decks
import pytest

from labkit import labs

TEXT = (build_decks.HERE / "INSTRUCTOR.md").read_text(encoding="utf-8")
LABS = {f"{spec.number:02d} {spec.slug}": spec for spec in labs.specs()}


def tables(text: str) -> dict[str, list[list[list[str]]]]:
    """Heading -> its tables, each a list of rows of words."""
    found: dict[str, list[list[list[str]]]] = {}
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        heading, _, body = part.partition("\n")
        blocks = re.findall(r"(?:^\|.*\n)+", body, flags=re.M)
        found[heading] = [
            [[cell.strip() for cell in row.strip("|\n").split("|")] for row in block.splitlines()[2:]] for block in blocks
        ]
    return found


TABLES = tables(TEXT)
MINUTES = {row[0]: row[1:] for row in TABLES["Minutes"][0]}
PLANS = [(name, table) for name in ("Half a day", "One day", "Two days") for table in TABLES[name]]


def minutes_of_deck(path: Path) -> float:
    return sum(map(float, re.findall(r"^`+\{notes\} ([\d.]+)\s*$", path.read_text(encoding="utf-8"), flags=re.M)))


def test_every_lab_and_the_opening_have_their_minutes():
    assert list(MINUTES) == ["opening", *LABS]


@pytest.mark.parametrize("row", MINUTES)
def test_minutes_are_those_of_the_decks_notes_and_of_the_lab(row):
    deck, notebook, together = MINUTES[row]
    stem = row.replace(" ", "_").replace("-", "_")
    assert float(deck) == minutes_of_deck(build_decks.HERE / f"{stem}.md")
    assert notebook == (str(LABS[row].minutes) if row in LABS else "")
    assert int(together) == int(deck) + int(notebook or 0)


@pytest.mark.parametrize(("name", "plan"), PLANS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_plan_adds_up(name, plan):
    clock = 0
    for at, minutes, what in plan:
        hours, rest = at.split(":")
        assert 60 * int(hours) + int(rest) == clock, f"{name}: {at} {what}"
        clock += int(minutes or 0)
        lab = what.removesuffix(", notebook")
        if lab in MINUTES:
            assert minutes == MINUTES[lab][1 if lab != what else 2], what
        else:
            assert not re.match(r"\d\d ", what), f"{what} is no lab"
    assert plan[-1][1:] == ["", ""], "a plan ends with the time of its end"


def test_two_days_hold_every_lab_and_no_day_is_longer_than_eight_hours():
    taught = {what for name, plan in PLANS if name == "Two days" for _, _, what in plan}
    assert set(LABS) <= taught
    assert all(int(plan[-1][0].split(":")[0]) < 8 for _, plan in PLANS)


def test_minutes_that_the_text_names_are_those_of_the_table():
    for lab, minutes in re.findall(r"(\d\d [a-z-]+) \((\d+)(?: minutes)?\)", TEXT):
        assert minutes == MINUTES[lab][2], lab
