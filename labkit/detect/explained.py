"""More than a verdict says: what goes wrong in a question's matter, the fix as a diff, how it is seen, what could fool that.

Each topic keeps its texts in `explained.py` beside its questions: `SUBJECT` (under which a check-list groups them),
`EXPLAINED` by detector, and `FIXES` by reason, where one has a diff of its own. Texts are made for gettext, as those of the
catalogue are; a diff is code and is not translated.
"""

from __future__ import annotations

import ast
import difflib
import functools
import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from ..errors import UsageError, shown
from . import module_of, names
from .catalogue import Reason, catalogue, translated

_PLACE = re.compile(r"\{(?P<name>\w+)(?::(?P<kind>plural|all) (?P<forms>[^}]*)|:[^}]*)?\}")


@dataclass(frozen=True)
class Explained:
    """What is to be known of one question.

    Attributes:
        mechanism: what goes wrong, and why nothing says so; a few sentences.
        fix: a diff of plain torch: each line begins with "- ", "+ " or two spaces.
        seen: how labkit sees it; begins with a verb's subject, and names what is recorded.
        fooled: what could fool that, and what labkit says then.
        lab: the slug of the lab that shows it, for a question that no lab asks; "" where there is none.
        needs: in a few words what an answer takes that one run of a script does not bring; "" where it brings all.
    """

    mechanism: str
    fix: str
    seen: str
    fooled: str
    lab: str = ""
    needs: str = ""


@dataclass(frozen=True)
class Explanation:
    """All there is to say of one question, or of one reason that it gives.

    Attributes:
        detector: its name; "" where several topics give the reason.
        question: what it asks.
        subject: under which it is grouped.
        told: the texts; None where they are of no question.
        reason: the key, where one was asked for.
        cause, advice: the reason's texts, with "…" for numbers; else empty.
        fix: the diff: the reason's own where there is one.
        findings: reasons under which it may be found, each with its cause; of a question that was asked for as a whole.
    """

    detector: str
    question: str
    subject: str
    told: Explained | None
    reason: str = ""
    cause: str = ""
    advice: str = ""
    fix: str = ""
    findings: tuple[tuple[str, str], ...] = ()


def subject_of(name: str) -> str:
    """The subject of a detector: "Data", "Learning rate"."""
    return translated(getattr(_texts(name), "SUBJECT", "Other"))


def weighs_at_a_crash(name: str) -> bool:
    """Whether what a detector finds costs something only where a run is interrupted."""
    return getattr(_texts(name), "AT_A_CRASH", False)


def subjects() -> list[str]:
    """All subjects, in the order in which a check-list shows them."""
    found = {subject_of(name): getattr(_texts(name), "PLACE", 99) for name in names()}
    return sorted(found, key=lambda subject: (found[subject], subject))


def explained(name: str) -> Explained | None:
    """The texts of a detector; None while nobody has written any."""
    return getattr(_texts(name), "EXPLAINED", {}).get(name)


def explanation(key: str) -> Explanation:
    """Look a key up: a detector, a reason, or detector/reason, as a report prints them.

    Raises:
        UsageError: there is none; the message names near ones.
    """
    name, slash, reason = key.strip().partition("/")
    if not slash and name in names():
        return _of_question(name)
    if not slash:
        name, reason = "", name
    if reason not in catalogue() or (slash and name not in names()):
        raise UsageError(_unknown(key))
    askers = detectors_of(reason)
    if slash and askers and name not in askers:
        raise UsageError(f"{reason} is no reason of {name}; give {askers[0]}/{reason}")
    return _of_reason(name or (askers[0] if askers else ""), reason)


def detectors_of(reason: str) -> list[str]:
    """The detectors that give a reason, by their source; those of its topic where a module that they share gives it."""
    mentions = f'"{reason}"'
    direct = [name for name in names() if mentions in _source(Path(str(module_of(name).__file__)))]
    if direct:
        return direct
    return [name for name in names() if reason in _of_topic(module_of(name).__name__.rpartition(".")[0])]


def without_numbers(text: str) -> str:
    """A text of the catalogue where no numbers are known: "… steps".

    >>> without_numbers("{steps:plural step/steps} of {ranks:all rank/ranks}: {share:.0%}")
    '… steps of ranks …: …'
    """

    def place(match: re.Match[str]) -> str:
        forms = (match["forms"] or "").split("/")
        return f"… {forms[-1]}" if match["kind"] == "plural" else f"{forms[-1]} …" if match["kind"] == "all" else "…"

    return _PLACE.sub(place, translated(text))


def _of_question(name: str) -> Explanation:
    told = explained(name)
    findings = tuple((key, without_numbers(catalogue()[key].cause)) for key in _found_by(name))
    return Explanation(
        name, module_of(name).QUESTION, subject_of(name), told, fix=told.fix if told else "", findings=findings
    )


def _of_reason(name: str, key: str) -> Explanation:
    reason = catalogue()[key]
    cause, advice = without_numbers(reason.cause), without_numbers(reason.script or reason.fix)
    if not name:
        return Explanation("", "", "", None, key, cause, advice)
    told = explained(name)
    fix = getattr(_texts(name), "FIXES", {}).get(key, told.fix if told else "")
    return Explanation(name, module_of(name).QUESTION, subject_of(name), told, key, cause, advice, fix)


def _unknown(key: str) -> str:
    known = [*names(), *catalogue()]
    near = difflib.get_close_matches(key.rpartition("/")[2], known, n=4, cutoff=0.5)
    near += [one for one in known if key and key in one and one not in near][: 4 - len(near)]
    hint = f" Near: {', '.join(near)}." if near else ""
    return f"no question and no reason {shown(key)}.{hint} `labkit explain` lists the questions"


def _found_by(name: str) -> list[str]:
    """Reasons that a detector's source gives with the status found, as far as they are written out there."""
    keys: list[str] = []
    for call in ast.walk(ast.parse(_source(Path(str(module_of(name).__file__))))):
        if isinstance(call, ast.Call) and len(call.args) > 1 and isinstance(call.args[0], ast.Constant):
            of = call.args[1]
            either = [of.body, of.orelse] if isinstance(of, ast.IfExp) else [of]
            given = [str(one.value) for one in either if isinstance(one, ast.Constant)]
            keys += [key for key in given if call.args[0].value == "found" and key in catalogue() and key not in keys]
    return keys


@functools.cache
def _of_topic(package: str) -> Mapping[str, Reason]:
    return importlib.import_module(f"{package}.reasons").REASONS


@functools.cache
def _source(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _texts(name: str) -> ModuleType | None:
    """The module of a detector's topic that holds its texts; None while nobody has written any."""
    package = module_of(name).__package__
    try:
        return importlib.import_module(f"{package}.explained")
    except ModuleNotFoundError:
        return None
