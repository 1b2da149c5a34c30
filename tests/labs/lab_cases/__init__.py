"""What the tests know of each lab: one file a lab, named as its folder, found by its file."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from lab_case import LabCase, LessonCase
from lessons_without_a_lab import WITHOUT_A_LAB


@functools.cache
def by_slug() -> dict[str, LabCase]:
    """The case of each lab, in the order of their files."""
    found = [importlib.import_module(f"{__name__}.{module.name}").CASE for module in pkgutil.iter_modules(__path__)]
    return {case.slug: case for case in found}


def of_lesson(stem: str) -> LessonCase:
    """The case of a notebook or deck, which is called NN_name after its lab, or after what it is about."""
    return WITHOUT_A_LAB[stem] if stem in WITHOUT_A_LAB else by_slug()[stem[3:].replace("_", "-")]
