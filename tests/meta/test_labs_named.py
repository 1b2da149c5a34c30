"""Readers are sent to labs that exist."""

import re
from pathlib import Path

import nbformat

from labkit import labs

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"\b[Ll]abs?\s+(\d\d(?:(?:\s+to\s+|,\s+|\s+and\s+|\s+\([^)]*\)\s+and\s+)\d\d)*)")


def named_in(text):
    """Numbers of labs that a text names: "lab 04", "labs 04 to 08", "labs 07 (input) and 08"."""
    return {int(number) for match in NAMED.findall(text) for number in re.findall(r"\d\d", match)}


def texts():
    """By path: the prose of notebooks without their outputs, slides, README, and labkit's own sources."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        yield path, "\n\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
    for path in [ROOT / "README.md", *sorted((ROOT / "slides").glob("*.md")), *sorted((ROOT / "labkit").rglob("*.py"))]:
        yield path, path.read_text()


def test_every_lab_that_is_named_exists():
    exist = {spec.number for spec in labs.specs()}
    found = {path: named_in(text) for path, text in texts()}
    assert {path.name: sorted(named - exist) for path, named in found.items() if named - exist} == {}
    assert sum(map(len, found.values())) > 20, "labs are named in these texts"


def test_a_lab_is_found_however_it_is_named():
    assert named_in("lab 13 shows when; labs 07 (input) and 08 (checkpoints), Lab 04, labs 01 to 03") == {13, 7, 8, 4, 1, 3}
