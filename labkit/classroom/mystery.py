"""A record without a label: one of a lab's programs, drawn by a seed, for somebody to say what is wrong with it.

What it was is kept nowhere in what a learner holds: it is drawn again from the seed when an answer is judged. The record
lies in a folder of its own that goes with it, not among the kept runs.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import weakref
from typing import TYPE_CHECKING, Any

import msgspec

from ..detect import module_of
from ..detect.verdict import Verdict
from ..errors import UnknownName, UsageError
from ..labs.checking import CannotTell
from ..labs.spec import Case
from ..reading import picture_of
from ..record.quantity import Quantity
from ..record.schema import Record, Run
from ..results import Diagnosed
from ..showing import as_html

if TYPE_CHECKING:
    from ..labs.opened import OpenedLab
    from ..view.picture import Picture

NOTHING = "nothing"
ALSO_NOTHING = ("healthy", "none", "nothing-is-wrong", "fixed", "clear")
TRIES = 3
"""Runs in which a fault must show, before the machine is said to be too busy."""

LABEL = "mystery"
HOW = "Look at .figures with .figure(name), at .measures, at .run; then lab.diagnose(mystery, 'your answer')."


def drawn_case(lab: OpenedLab, seed: int) -> tuple[Case, dict[str, Any]]:
    """The program of a seed, and its settings: the same ones each time."""
    draw = random.Random(f"{lab.spec.slug} {seed}")
    case = draw.choice(lab.spec.mysteries)
    return case, {"ranks": lab.spec.ranks, **{name: draw.choice(values) for name, values in case.settings.items()}}


def choices_of(lab: OpenedLab) -> dict[str, str]:
    """The answers there are, each with what it asks; "nothing" where a program of the lab is healthy."""
    found = {case.fault: case.asks or module_of(case.fault).QUESTION for case in lab.spec.mysteries if case.fault}
    healthy = any(not case.fault for case in lab.spec.mysteries)
    return dict(sorted(found.items())) | ({NOTHING: "Is all of it as it should be?"} if healthy else {})


def make(lab: OpenedLab, seed: int) -> Mystery:
    """Run the program of a seed, until its record shows what it is there for.

    Raises:
        CannotTell: it does not show in several runs: this machine is busy with something else.
    """
    case, settings = drawn_case(lab, seed)
    for number in range(TRIES):
        folder = tempfile.mkdtemp(prefix="labkit-")
        try:
            record = lab.run(case.variant, **settings, seed=(seed + number) % 2**31, record_dir=f"{folder}/record")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        mystery = Mystery(lab, seed, _without_label(record), folder)
        if mystery.shows(case):
            return mystery
    raise CannotTell("the record does not show what it should, for other programs use this machine; try again later")


def _without_label(record: Record) -> Record:
    """The same record without its variant's name, its settings, and the lines of its source."""
    runs = {role: _blurred(run) for role, run in record.runs.items()}
    plain = {name: getattr(record, name) for name in Record.__struct_fields__}
    return Record(**{**plain, "variant": LABEL, "runs": runs, "folder": None})


def _blurred(run: Run) -> Run:
    def without_places(log: Any) -> Any:
        facts = {name: value for name, value in log.head.facts.items() if not name.endswith("_where")}
        return msgspec.structs.replace(log, head=msgspec.structs.replace(log.head, facts=facts))

    earlier = tuple(tuple(map(without_places, logs)) for logs in run.earlier)
    return msgspec.structs.replace(run, ranks=tuple(map(without_places, run.ranks)), earlier=earlier)


class Mystery:
    """A record to diagnose. Made by `lab.mystery`.

    Attributes:
        seed: with it the same program comes again.
        run: what the ranks wrote.
        choices: the answers there are, each with the question behind it.
    """

    def __init__(self, lab: OpenedLab, seed: int, record: Record, folder: str | None) -> None:
        self._lab, self._record = lab, record
        if folder is not None:
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.seed, self.run = seed, record.run
        self._diagnosed = False
        self.choices = choices_of(lab)
        self.how = HOW

    @property
    def said(self) -> str:
        """What ran, in words that tell nothing."""
        spec = self._lab.spec
        return f"Lab {spec.number:02d} {spec.slug}: {self.run.ranks_said}, {self.run.steps_said}. What is wrong with it?"

    def __repr__(self) -> str:
        rows = "\n".join(f"  {name:<28}{asks}" for name, asks in self.choices.items())
        return f"A record without a label. {self.said}\n{rows}\n{self.how}"

    _repr_html_ = as_html

    @property
    def figures(self) -> tuple[str, ...]:
        """The names of the figures that may be drawn; some want more than this record holds, and say so.

        Those that name what ran come with the right diagnosis.
        """
        spec = self._lab.spec
        return tuple(name for name in spec.figures if self._diagnosed or name not in spec.figures_that_name)

    def figure(self, name: str, **choices: Any) -> Picture:
        """Draw one of the lab's figures of it.

        Raises:
            UnknownName: with the names there are.
            UsageError: the record lacks what the figure shows, or the figure names what ran and that is still to be said.
        """
        if name in self._lab.spec.figures_that_name and not self._diagnosed:
            raise UsageError(f"the figure {name!r} names what ran; draw it once you have said what is wrong")
        return picture_of(self._lab.spec, name, self._record, **choices)

    @property
    def measures(self) -> dict[str, Quantity]:
        """Its measures, by name."""
        return self._lab.measures(self._record)

    def found(self) -> set[str]:
        """Which of the choices the detectors find in it."""
        return {verdict.detector for verdict in self._lab.judge(self._record).found} & {*self.choices}

    def shows(self, case: Case) -> bool:
        """Whether the record tells what it is of: by its detector, or by measures that stand far above any noise."""
        return bool(case.asks) or (not self.found() if not case.fault else case.fault in self.found() or self._hidden(case))

    def _hidden(self, case: Case) -> bool:
        """Whether other programs keep the detector from an answer that the measures give all the same."""
        return bool(case.evidence) and self._verdicts()[case.fault].status == "inconclusive"

    def _verdicts(self) -> dict[str, Verdict]:
        return {verdict.detector: verdict for verdict in self._lab.judge(self._record)}

    def diagnose(self, answer: str) -> Diagnosed:
        """Judge an answer. See `Lab.diagnose`."""
        given = _chosen(answer, self.choices)
        case, _ = drawn_case(self._lab, self.seed)
        by_measures = bool(case.asks) or (bool(case.fault) and self._hidden(case))
        said = self._by_measures(given, case) if by_measures else self._by_verdicts(given, case)
        self._diagnosed = self._diagnosed or said.right
        return said

    def _by_verdicts(self, given: str, case: Case) -> Diagnosed:
        verdicts = self._verdicts()
        if given == (case.fault or NOTHING):
            return Diagnosed(given, True, _why_right(case.fault, verdicts, self.choices))
        if given == NOTHING:
            return Diagnosed(given, False, "One of the questions finds something in this record.", self._look())
        verdict = verdicts[given]
        if verdict.status == "found":
            because = f"That is found, too: {_sentence(verdict.cause)} But it follows from another fault: name that one."
            return Diagnosed(given, False, because, self._look())
        status = verdict.status.replace("_", " ")
        return Diagnosed(
            given, False, f"{verdict.question} On this record: {status}. {_sentence(verdict.cause)}", self._look()
        )

    def _by_measures(self, given: str, case: Case) -> Diagnosed:
        measures = self.measures
        told = ", ".join(f"{name.replace('_', ' ')} {measures[name]}" for name in case.evidence if name in measures)
        right = given == case.fault
        return Diagnosed(given, right, f"This record says: {told}.", "" if right else self._look())

    def _look(self) -> str:
        return "Look again, at .figure(name) for each of .figures and at .measures."


def _chosen(answer: str, choices: dict[str, str]) -> str:
    plain = "-".join(answer.strip().lower().replace("_", " ").split())
    plain = NOTHING if plain in ALSO_NOTHING and NOTHING in choices else plain
    if plain not in choices:
        raise UnknownName("diagnosis", answer, choices)
    return plain


def _why_right(fault: str, verdicts: dict[str, Verdict], choices: dict[str, str]) -> str:
    if fault:
        verdict = verdicts[fault]
        return " ".join(filter(None, (_sentence(verdict.cause), verdict.fix and f"To repair it: {_sentence(verdict.fix)}")))
    clear = [verdicts[name] for name in choices if name in verdicts and verdicts[name].status == "clear"]
    return " ".join(_sentence(verdict.cause) for verdict in clear[:3])


def _sentence(text: str) -> str:
    first = text.split(" ", 1)[0]
    begun = text[:1].upper() + text[1:] if first.isalpha() else text  # a name of code stays as it is
    return begun + ("" if begun.endswith((".", "?", "!")) or not begun else ".")
