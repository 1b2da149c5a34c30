"""What `labkit explain` prints: text that reads well aloud, with a diff that needs no colour."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ..detect import module_of, names
from ..detect.explained import Explanation, subject_of, subjects
from ..labs.spec import LabSpec
from .cards import sentence
from .lines import code, paragraph

_STYLE = {"-": "red", "+": "bold green"}


def print_explanation(console: Console, told: Explanation, lab: LabSpec | None) -> None:
    """All there is to say of a key.

    Args:
        lab: that shows it; None where none does.
    """
    key = "/".join(filter(None, (told.detector, told.reason)))
    paragraph(console, Text.assemble((key, "bold"), f": {told.question}" if told.question else ""))
    if told.reason:
        _part(console, "What is said", sentence(told.cause) + (f" {sentence(told.advice)}" if told.advice else ""))
    if told.told is not None:
        _part(console, "What goes wrong", told.told.mechanism)
        _heading(console, "The fix")
        code(console, diff(told.fix), left=2)
        _part(console, "How labkit sees it", told.told.seen)
        _part(console, "What could fool it", told.told.fooled)
    if lab is not None:
        _part(console, "The lab that shows it", f"{lab.title}: labkit run {lab.slug}")
    if told.findings:
        _heading(console, "What it finds")
        for reason, cause in told.findings:
            paragraph(console, Text(reason, style="bold"), left=2)
            paragraph(console, sentence(cause), left=6)


def print_questions(console: Console) -> None:
    """Every question, by subject."""
    left = max(map(len, names())) + 4
    for subject in subjects():
        console.print(Text(subject, style="bold"))
        for name in names():
            if subject_of(name) == subject:
                paragraph(console, module_of(name).QUESTION, left=left, first=f"  {name}")
        console.print()
    paragraph(console, "Say more of one: labkit explain rank-duplicates")


def diff(text: str) -> Text:
    """A diff, marked as diffs are, with colours where there are any."""
    shown = Text()
    for line in text.rstrip("\n").split("\n"):
        shown.append(line + "\n", style=_STYLE.get(line[:1], ""))
    return shown


def _part(console: Console, heading: str, text: str) -> None:
    _heading(console, heading)
    paragraph(console, text, left=2)


def _heading(console: Console, heading: str) -> None:
    console.print()
    console.print(Text(heading, style="bold"))
