"""What a lab is built from: names that are loaded when first called, what a lesson shows, where a function is written."""

import inspect
import textwrap
from dataclasses import dataclass, replace

import pytest

from labkit import labs
from labkit.labs.spec import TaskFor, lazy, source_of
from labkit.record.where import where_written

HERE = "tests/unit/labs/test_lab_base.py"


def decimal(value):
    return value


class Keeper:
    kept = 0


TABLE = {"a": decimal, "b": (decimal, "x = 1\n"), "c": Keeper}


def test_a_function_is_found_by_where_it_is_and_called_with_what_it_is_given():
    assert lazy("textwrap:dedent", __name__)("  a") == textwrap.dedent("  a")


def test_what_a_lesson_shows_is_what_is_written_and_several_parts_stand_apart():
    source = source_of(f"{__name__}:TABLE", __name__)
    assert source("a") == inspect.getsource(decimal) and source("c").startswith("class Keeper:")
    assert source("b") == inspect.getsource(decimal) + "\n\nx = 1\n"


def test_a_function_and_a_class_are_pointed_at_by_the_line_that_they_begin_in(monkeypatch, request):
    monkeypatch.chdir(request.config.rootpath)
    lines = inspect.getsource(inspect.getmodule(decimal)).splitlines()
    assert where_written(decimal) == f"{HERE}:{lines.index('def decimal(value):') + 1}"
    assert where_written(Keeper) == f"{HERE}:{lines.index('class Keeper:') + 1}"


@pytest.mark.parametrize("nothing", [None, len, int])
def test_what_is_written_in_no_file_is_pointed_at_by_nothing(nothing):
    assert where_written(nothing) == ""


def test_a_task_of_a_lab_begins_with_the_configuration():
    @dataclass(frozen=True)
    class Task(TaskFor[str]):
        loader: str
        stand_for: int = 1

    task = Task("config", "loader")
    assert (task.config, replace(task, stand_for=2)) == ("config", Task("config", "loader", 2))


@pytest.mark.parametrize("spec", labs.specs(), ids=lambda spec: spec.slug)
def test_every_variant_shows_its_source(spec):
    for name in [variant.name for variant in spec.variants] or ["survey"]:
        assert spec.source(name).strip()
