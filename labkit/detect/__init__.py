"""What it means: pure functions from a record to a verdict, one file a question, found by their files."""

from __future__ import annotations

import functools
import importlib
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np

from ..errors import UnknownName
from ..record.own_names import Apart, apart, listening
from ..record.schema import Origin, Record
from ..words import printable
from .catalogue import said
from .lives import of_one_life
from .under_load import said_with
from .verdict import Verdict

Detector = Callable[[Record], Verdict]


@functools.cache
def _questions() -> dict[str, str]:
    """Detector -> its module, as found: each file of a topic that defines `detect` asks a question."""
    found = {}
    for folder in sorted(path for path in Path(__path__[0]).iterdir() if path.is_dir()):
        for file in sorted(folder.glob("*.py")):
            if "\ndef detect(" in file.read_text(encoding="utf-8"):
                found[file.stem.replace("_", "-")] = f"{__name__}.{folder.name}.{file.stem}"
    return dict(sorted(found.items()))


def names() -> list[str]:
    """The names of all detectors."""
    return list(_questions())


def detector(name: str) -> Detector:
    """A detector by its name.

    Raises:
        UnknownName: with the valid names.
    """
    if name not in names():
        raise UnknownName("detector", name, names())
    return module_of(name).detect


def is_timed(name: str) -> bool:
    """Whether a detector judges times, which noise and other programs change."""
    return getattr(module_of(name), "TIMED", False)


def is_of_the_doctor(name: str) -> bool:
    """Whether only a record of the doctor holds what a detector asks for; then no lab asks it."""
    return getattr(module_of(name), "OF_THE_DOCTOR", False)


def ask(name: str, record: Record) -> Verdict:
    """A detector's answer on a record; what it advises suits whoever wrote it, a lab or a script.

    A record that a detector cannot make sense of gets no answer to this question, which says why; the others are not
    touched by it.

    Raises:
        UnknownName: with the valid names.
    """
    judge, seen = detector(name), apart(record)
    with listening() as heard, np.errstate(divide="raise", over="raise", invalid="raise"):
        try:
            answer = judge(of_one_life(seen.record) if _is_of_passes(name) else seen.record)
            answer = said_with(answer, seen.record) if is_timed(name) else answer
            verdict = _for_its_own_names(answer, seen, heard)
        except Exception as error:
            verdict = _unanswered(name, error, seen, heard)
    return verdict if record.origin is Origin.LAB else replace(verdict, in_script=True)


def _for_its_own_names(verdict: Verdict, seen: Apart, heard: set[str]) -> Verdict:
    """The verdict, and where names of the script's own are why it has none, or rests on nothing, which."""
    why = seen.why(heard)
    if not why or not (verdict.status == "not_applicable" or seen.is_evidence(heard)):
        return verdict
    more = verdict.fix if verdict.status == "not_applicable" else ""
    return Verdict(
        detector=verdict.detector,
        question=verdict.question,
        status="not_applicable",
        reason="own-names-and-more" if more else "own-names",
        numbers={"why": why, "remedy": seen.remedy(heard), "fix": more},
    )


def _unanswered(name: str, error: Exception, seen: Apart, heard: set[str]) -> Verdict:
    last = traceback.extract_tb(error.__traceback__)[-1]
    why = seen.why(heard)
    return Verdict(
        detector=name,
        question=module_of(name).QUESTION,
        status="not_applicable",
        reason="own-names-do-not-go-together" if why else "does-not-go-together",
        numbers={
            "why": why,
            "said": printable(f"{type(error).__name__}: {error}", most=200),
            "file": last.filename.rpartition("/")[2],
            "line": last.lineno,
            "remedy": seen.remedy(heard) or said("record-what-is-needed"),
        },
    )


def _is_of_passes(name: str) -> bool:
    """Whether a question is about what is read in whole passes over the data."""
    return ".reads." in _questions()[name]


def module_of(name: str) -> ModuleType:
    """The module that asks a detector's question."""
    return importlib.import_module(_questions()[name])
