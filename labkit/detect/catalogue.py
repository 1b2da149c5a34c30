"""What verdicts say: a cause and a fix for each reason key, with places for numbers.

A detector gives a status, a reason key and numbers; the sentence is written here, when somebody reads it. Each topic keeps
its texts in `reasons.py` beside its questions; those that several topics share lie in `detect/reasons.py`. Keys are unique
over all of them. Texts are made for gettext: whole sentences, and a count names its forms in the text itself.

In a text:

    {share:.0%}                          a number, as Python formats it
    {steps:plural step/steps}            a count with its noun; another language names as many forms as it has
    {seconds:duration}  {value:short}    as `words.duration` and `words.short` write them
    {ranks:and}                          a list: "0, 1 and 3"
    {ranks:all rank/ranks}               the same with its noun: "rank 1", "ranks 0, 1 and 3"
    {why}                                another text of the catalogue, given as `Said`
"""

from __future__ import annotations

import functools
import gettext
import importlib
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..words import duration, short


@dataclass(frozen=True)
class Reason:
    """What a reason key says.

    Attributes:
        cause: one sentence: what is wrong, or why there is no answer. No full stop: where it stands decides.
        fix: one sentence a person can act on, in a run of a lab; empty where there is nothing to do.
        script: the same for a script of one's own, where that differs: it has no `--set` and no variants.
    """

    cause: str
    fix: str = ""
    script: str = ""


@dataclass(frozen=True)
class Said:
    """A reason key with its numbers: a text that is part of another, or follows a verdict's cause."""

    key: str
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return written(reason(self.key).cause, self.numbers)


def said(key: str, **numbers: Any) -> Said:
    """A text of the catalogue, to be given as a number of another."""
    return Said(key, numbers)


@functools.cache
def catalogue() -> Mapping[str, Reason]:
    """All reasons by key.

    Raises:
        ValueError: one key stands in two places.
    """
    from . import reasons  # those that topics share

    found: dict[str, Reason] = dict(reasons.REASONS)
    for file in sorted(Path(__file__).parent.glob("*/reasons.py")):
        of_topic = importlib.import_module(f"{__package__}.{file.parent.name}.reasons").REASONS
        twice = found.keys() & of_topic.keys()
        if twice:
            raise ValueError(f"reason keys in two catalogues: {', '.join(sorted(twice))}")
        found |= of_topic
    return found


def reason(key: str) -> Reason:
    """The texts of a key.

    Raises:
        KeyError: there is none.
    """
    return catalogue()[key]


def written(text: str, numbers: Mapping[str, Any]) -> str:
    """A text of the catalogue in the reader's language, with its numbers in place.

    >>> written("{steps:plural step/steps} of {ranks:and}", {"steps": 1, "ranks": [0, 1, 3]})
    '1 step of 0, 1 and 3'
    """
    return _WRITER.vformat(_translation().gettext(text) if text else "", (), numbers)


def translated(text: str) -> str:
    """A text that holds no numbers, in the reader's language."""
    return _translation().gettext(text) if text else ""


@functools.cache
def _translation() -> gettext.NullTranslations:
    """The reader's language, by the environment; the texts as they stand where there is no catalogue for it."""
    return gettext.translation("labkit", localedir=Path(__file__).parents[1] / "locale", fallback=True)


class _Writer(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        kind, _, rest = format_spec.partition(" ")
        if kind == "plural":
            forms = rest.split("/")
            number = f"{value:,}" if isinstance(value, int) else f"{value:g}"
            return f"{number} {forms[min(_form(value), len(forms) - 1)]}"
        if kind == "all":
            forms = rest.split("/")
            return f"{forms[min(_form(len(value)), len(forms) - 1)]} {_listed(value)}"
        if kind == "and":
            return _listed(value)
        if kind == "duration":
            return duration(value)
        if kind == "short":
            return short(value)
        if not format_spec and isinstance(value, (list, tuple)):
            return "; ".join(map(str, value))
        return format(value, format_spec) if format_spec else str(value)


_WRITER = _Writer()


def _form(count: float) -> int:
    """Which form of a noun a count takes, by the language's rule."""
    rule = getattr(_translation(), "plural", None)
    return rule(count) if rule is not None else int(count != 1)


def _listed(values: Iterable[Any]) -> str:
    *first, last = map(str, values)
    return f"{', '.join(first)} {_translation().gettext('and')} {last}" if first else last
