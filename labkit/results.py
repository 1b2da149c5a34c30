"""What labs answer with, beside records and verdicts: a comparison, a check of an exercise, a difference in source."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

import msgspec

from .detect.verdict import Verdicts
from .record.baseline import Baseline, baseline_file, quantities
from .record.quantity import Quantity
from .showing import as_html


class Comparison:
    """Measures of several records, by variant, with their provenance."""

    def __init__(self, columns: dict[str, dict[str, Quantity]], labels: list[str]) -> None:
        self.columns, self.labels = columns, labels

    def __repr__(self) -> str:
        names = list(dict.fromkeys(name for column in self.columns.values() for name in column))
        rows = [["", *self.columns]]
        rows += [[name, *(c[name].said if name in c else "" for c in self.columns.values())] for name in names]
        first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
        lines = [
            f"{row[0]:<{first}}" + "".join(f"   {cell:>{w}}" for cell, w in zip(row[1:], others, strict=True))
            for row in rows
        ]
        return "\n".join(lines + self.labels)

    _repr_html_ = as_html


class CheckResult:
    """What a check of an exercise found.

    Attributes:
        findings: what is still wrong, empty when it is right, and where it could not be told.
        seed: of the cases, or None.
        doubt: why it could not be told on this machine now; else empty.
    """

    def __init__(self, findings: list[str], seed: int | None = None, doubt: str = "") -> None:
        self.findings, self.seed, self.doubt = findings, seed, doubt

    @property
    def passed(self) -> bool:
        """Whether it is right. False as well where it could not be told: `doubt` says so."""
        return not self.findings and not self.doubt

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        if self.passed:
            return "Solved: every check passed."
        if self.doubt:
            return f"Cannot tell on this machine now: {self.doubt}"
        lines = [f"Not yet: {len(self.findings)} still wrong.", *(f"  - {text}" for text in self.findings)]
        return "\n".join([*lines, *([self.again] if self.again else [])])

    @property
    def again(self) -> str:
        """How to get the same cases again; empty where no seed is known."""
        if self.seed is None:
            return ""
        return f"Other cases come each time; these come again with lab.check(..., seed={self.seed})."

    _repr_html_ = as_html


@dataclass(frozen=True, repr=False)
class Hint:
    """A hint for an exercise.

    Attributes:
        number, of: which, of how many.
        text: what it says.
    """

    number: int
    of: int
    text: str

    @property
    def more(self) -> str:
        """What to ask for next."""
        return "lab.hint() gives the next one." if self.number < self.of else "This is the last; lab.solution() shows one."

    def __repr__(self) -> str:
        return f"Hint {self.number} of {self.of}: {self.text}\n{self.more}"

    _repr_html_ = as_html


@dataclass(frozen=True, repr=False)
class Shown:
    """Code of an exercise: what to begin with, or a solution.

    Attributes:
        title: what it is.
        code: the code, whole.
        note: what to think about; empty for nothing.
        folded: whether it is out of sight until somebody opens it.
        fresh_cell: whether a notebook puts it into a new cell.
    """

    title: str
    code: str
    note: str = ""
    folded: bool = False
    fresh_cell: bool = False

    def __repr__(self) -> str:
        return "\n".join(part for part in (f"{self.title}:", self.code, self.note) if part)

    _repr_html_ = as_html


@dataclass(frozen=True, repr=False)
class Diagnosed:
    """Whether a diagnosis is right, and what the detectors say.

    Attributes:
        answer: what somebody said.
        right: whether it is.
        because: why, out of the detectors' verdicts.
        next: what to do now; empty where it is right.
    """

    answer: str
    right: bool
    because: str
    next: str = ""

    def __bool__(self) -> bool:
        return self.right

    def __repr__(self) -> str:
        begun = "Right" if self.right else "Not that"
        return f"{begun}: {self.answer}. {self.because}" + (f"\n{self.next}" if self.next else "")

    _repr_html_ = as_html


class Diff:
    """Two sources and their difference.

    Args:
        before_name, after_name: what the two are called.
        before, after: the sources.
        context: equal lines that are shown around each change; the default shows a whole function.
    """

    def __init__(self, before_name: str, after_name: str, before: str, after: str, *, context: int = 20) -> None:
        self.before_name, self.after_name = before_name, after_name
        self.before, self.after, self.context = before, after, context

    def __repr__(self) -> str:
        before, after = self.before.splitlines(), self.after.splitlines()
        names = self.before_name, self.after_name
        return "\n".join(difflib.unified_diff(before, after, *names, lineterm="", n=self.context))

    _repr_html_ = as_html


@dataclass(frozen=True)
class Bench:
    """What a machine can do, and how it is known.

    Attributes:
        baseline: the numbers.
        verdicts: on the measurement; empty where the baseline had been kept.
        reason: why it was measured, or why it was not.
        measured_now: whether it was.
    """

    baseline: Baseline
    verdicts: Verdicts
    reason: str
    measured_now: bool

    def report(self) -> dict[str, Any]:
        """All of it as plain data, as `labkit bench --json` writes it."""
        baseline, measures = self.baseline, {}
        for name, quantity in quantities(baseline).items():
            measures[name] = {"value": quantity.value, "unit": quantity.unit}
            measures[name] |= {"spread": baseline.spread[name]} if name in baseline.spread else {}
            measures[name] |= {"how": baseline.how[name]} if name in baseline.how else {}
        return {
            "lab": "start-here",
            "measured_now": self.measured_now,
            "reason": self.reason,
            "age_days": round(baseline.age_days(), 2),
            "measures": measures,
            "verdicts": [
                {"detector": v.detector, "status": v.status, "reason": v.reason, "cause": v.cause, "fix": v.fix}
                for v in self.verdicts
            ],
            "baseline": msgspec.to_builtins(baseline),
            "doubts": baseline.doubts,
            "set_aside": baseline.set_aside,
            "kept": str(baseline_file(baseline.device_kind)),
        }


@dataclass(frozen=True)
class LabHere:
    """What of one lab can be seen on this machine.

    Attributes:
        number, slug, question: of the lab.
        ranks: its default number of ranks.
        runs: "measured", or "measured; times show order, not speed" where its ranks outnumber the cores or GPUs.
        needs_gpu: what only a GPU can show, and is not shown here.
        simulated: what comes from a model on any machine.
    """

    number: int
    slug: str
    question: str
    ranks: int
    runs: str
    needs_gpu: tuple[str, ...]
    simulated: tuple[str, ...]

    @property
    def notes(self) -> str:
        """What of it is not measured here, as the end of a line; empty where all is."""
        notes = [f"needs a GPU: {', '.join(self.needs_gpu)}"] if self.needs_gpu else []
        notes += [f"simulated: {', '.join(self.simulated)}"] if self.simulated else []
        return "".join(f" · {note}" for note in notes)


@dataclass(frozen=True, repr=False)
class LabsHere:
    """Which labs are measured on this machine, what of them needs a GPU, and what is simulated.

    Attributes:
        machine: its processor and GPUs, in words.
        rows: one a lab.
    """

    machine: str
    rows: tuple[LabHere, ...]

    def __repr__(self) -> str:
        lines = [f"{row.number:02d} {row.slug:<18}{row.runs}{row.notes}" for row in self.rows]
        return "\n".join([*lines, f"on {self.machine}"])

    _repr_html_ = as_html
