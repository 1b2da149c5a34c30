"""Hints, solutions, a fresh start, and functions that cannot be called as an exercise calls them."""

import ast
import re

import pytest

from labkit import labs
from labkit.errors import UnknownName, UsageError
from labkit.facade import Lab
from labkit.labs.checking import unfit

EXERCISES = [(spec.slug, exercise.name) for spec in labs.specs() for exercise in (spec.exercise, *spec.builds)]


@pytest.mark.parametrize(("slug", "name"), EXERCISES)
def test_each_exercise_has_three_hints_a_start_and_a_solution_that_define_what_it_asks_for(slug, name):
    spec = labs.spec(slug)
    exercise = spec.named_exercise(name)
    assert exercise.help is not None
    help_ = exercise.help()
    wanted = re.match(r"(?:def|class) (\w+)", exercise.signature)
    assert wanted and len(help_.hints) == 3 and all(hint.endswith((".", "?", "!")) for hint in help_.hints)
    for code in (help_.start, help_.solution):
        defined = {node.name for node in ast.parse(code).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        assert wanted[1] in defined
    assert f"lab.check({wanted[1]}" in help_.start and "lab.check" not in help_.solution


def test_hints_come_one_after_the_other_and_begin_again_after_a_reset():
    lab = Lab(labs.spec("overlap"))
    assert [lab.hint().number for _ in range(4)] == [1, 2, 3, 3]
    assert lab.hint("bucketed-ddp").number == 1, "each exercise has its own"
    assert "lab.solution()" in repr(lab.hint()) and "next one" in repr(lab.hint("bucketed-ddp"))
    assert "def my_bucket_mb" in lab.reset_exercise().code
    assert lab.hint().number == 1 and lab.hint("bucketed-ddp").number == 3


def test_a_solution_is_out_of_sight_until_somebody_opens_it():
    html = Lab(labs.spec("overlap")).solution()._repr_html_()
    before, _, after = html.partition("</summary>")
    assert "<details><summary>" in before and "predict" not in before and "predict" in after


def test_an_exercise_that_is_not_there_is_named():
    with pytest.raises(UnknownName, match="bucketed-ddp"):
        Lab(labs.spec("overlap")).check(print, "bucketed")
    with pytest.raises(UsageError, match="the function itself"):
        Lab(labs.spec("overlap")).check(3)  # type: ignore[arg-type]


def test_arguments_are_compared_by_their_number_not_their_names():
    signature = "def my_loader(data, rank):"
    assert unfit(lambda data, rank: 0, signature) == "" and unfit(lambda a, b: 0, signature) == ""
    assert unfit(lambda a, b, c=3: 0, signature) == "" and unfit(lambda *all_: 0, signature) == ""
    assert "called with (data, rank), and yours takes (data)" in unfit(lambda data: 0, signature)
    assert "yours takes (a, b, c)" in unfit(lambda a, b, c: 0, signature)
    assert "yours takes (a, rank)" in unfit(lambda a, *, rank: 0, signature)
    assert unfit(int, "class MyTraining(Training):") == ""


def test_a_function_that_takes_something_else_is_told_before_anything_starts():
    lab = Lab(labs.spec("zero-stages"))
    assert "yours takes (a, b)" in str(lab.check(lambda a, b: 0))
