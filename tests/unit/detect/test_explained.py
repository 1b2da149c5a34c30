"""`labkit explain`: each question has its texts, each diff is plain torch, and a key that is wrong finds near ones."""

from __future__ import annotations

import ast
import importlib
import io
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from rich.console import Console

from labkit import labs
from labkit.detect import module_of, names
from labkit.detect.catalogue import catalogue
from labkit.detect.explained import detectors_of, explanation, subject_of, subjects, without_numbers
from labkit.errors import UsageError
from labkit.view.explained import print_explanation, print_questions

DETECT = Path(str(importlib.import_module("labkit.detect").__file__)).parent
TOPICS = sorted(path.parent.name for path in DETECT.glob("*/reasons.py"))
KNOWN = {"torch": torch, "dist": dist}
"""By what a diff calls it: a module whose names must exist."""


WRITTEN = [topic for topic in TOPICS if (DETECT / topic / "explained.py").is_file()]


def texts(topic: str):
    return importlib.import_module(f"labkit.detect.{topic}.explained")


DIFFS = [
    pytest.param(diff, id=f"{topic}: {key}")
    for topic in WRITTEN
    for key, diff in [
        *((name, told.fix) for name, told in texts(topic).EXPLAINED.items()),
        *getattr(texts(topic), "FIXES", {}).items(),
    ]
]


def sides(diff: str) -> tuple[str, str]:
    """The code before and after a diff."""
    lines = diff.splitlines()
    return tuple("\n".join(line[2:] for line in lines if line[:1] in marks) + "\n" for marks in (" -", " +"))  # type: ignore


def unknown_names(code: str) -> list[str]:
    """Dotted names of torch that torch does not have."""
    wrong = []
    for node in ast.walk(ast.parse(code)):
        if (
            isinstance(node, ast.Attribute)
            and (path := ast.unparse(node).split("."))[0] in KNOWN
            and all(map(str.isidentifier, path))
        ):
            found = KNOWN[path[0]]
            for part in path[1:]:
                found = getattr(found, part, None)
            wrong += [ast.unparse(node)] if found is None else []
    return wrong


@pytest.mark.parametrize("name", names())
def test_each_question_is_explained_and_belongs_to_a_subject(name):
    found = explanation(name)
    assert found.told is not None, f"write what labkit explain says of {name}: EXPLAINED in explained.py of its topic"
    assert found.subject in subjects() and found.subject != "Other"
    for text in (found.told.mechanism, found.told.seen, found.told.fooled):
        assert text.endswith(".") and "  " not in text


@pytest.mark.parametrize("diff", DIFFS)
def test_each_diff_is_python_before_and_after_and_calls_what_torch_has(diff):
    assert all(line[:2] in ("  ", "- ", "+ ") for line in diff.splitlines())
    before, after = sides(diff)
    assert ast.dump(ast.parse(before)) != ast.dump(ast.parse(after))
    assert not unknown_names(before) and not unknown_names(after)


def test_a_wrong_diff_is_seen():
    assert unknown_names("torch.amp.GradScaller()") == ["torch.amp.GradScaller"]
    with pytest.raises(SyntaxError):
        ast.parse(sides("- if x\n+ if x:\n      y()")[0])


@pytest.mark.parametrize("topic", WRITTEN)
def test_what_is_explained_is_asked_and_what_has_a_diff_is_a_reason(topic):
    of_topic = {name for name in names() if module_of(name).__name__.split(".")[-2] == topic}
    assert set(texts(topic).EXPLAINED) == of_topic
    assert set(getattr(texts(topic), "FIXES", {})) <= set(importlib.import_module(f"labkit.detect.{topic}.reasons").REASONS)
    slugs = {spec.slug for spec in labs.specs()}
    assert {told.lab for told in texts(topic).EXPLAINED.values()} <= slugs | {""}


@pytest.mark.parametrize("reason", catalogue())
def test_each_reason_can_be_asked_for(reason):
    alone = explanation(reason)
    assert alone.reason == reason and "{" not in alone.cause + alone.advice
    for name in detectors_of(reason):
        assert explanation(f"{name}/{reason}").detector == name


def test_a_reason_shows_its_own_diff_and_its_question():
    found = explanation("coverage/iterator-used-up")
    assert found.detector == "coverage" and "batches = iter(loader)" in found.fix != explanation("coverage").fix
    assert "ranks-never-joined" in dict(explanation("replicas-differ").findings)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("rank-duplicate", "rank-duplicates"),
        ("duplicates", "rank-duplicates"),
        ("coverage/iterator-used", "iterator-used-up"),
        ("order/iterator-used-up", "coverage/iterator-used-up"),
        ("xyz", "labkit explain` lists"),
        ("", "labkit explain` lists"),
        ("\x1b[31m<b>", "labkit explain` lists"),
    ],
)
def test_a_key_that_is_none_names_near_ones(key, said):
    with pytest.raises(UsageError) as refused:
        explanation(key)
    assert said in str(refused.value) and "\x1b" not in str(refused.value)


def test_texts_without_numbers_keep_their_words():
    assert without_numbers("{steps:plural step/steps}, {ranks:all rank/ranks}, {x:.2f} {y}") == "… steps, ranks …, … …"


@pytest.mark.parametrize("width", [60, 200])
def test_it_is_printed_without_anything_beside_the_words(width):
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False, markup=False, emoji=False)
    for name in names():
        print_explanation(console, explanation(name), labs.specs()[0])
    print_questions(console)
    printed = out.getvalue()
    assert printed.isascii() or not set(printed) & set("╭│─╰")
    assert not [line for line in printed.splitlines() if line != line.rstrip()]
    for name in names():
        assert name in printed and subject_of(name) in printed
    diffs = "\n".join(explanation(name).fix for name in names()).splitlines()
    assert not [
        line for line in printed.splitlines() if len(line) > width and line.strip() not in {d.strip() for d in diffs}
    ]
