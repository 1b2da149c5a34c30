"""What the doctor's lesson needs beside the doctor: scripts with faults to copy, a check of a repair, and what must hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import UnknownName, UsageError
from ..results import CheckResult, Diff
from ..words import plural
from .diagnosis import Diagnosis, examine

_FOLDER = Path(__file__).parent / "examples"
"""Scripts of nobody in particular: nothing of labkit imports them."""


@dataclass(frozen=True)
class Example:
    """A script with faults that raise no error.

    Attributes:
        name: its file's, without `.py`.
        ranks: on how many it is started.
        question: what its author asks.
        updates: of the optimizer that one run of it makes.
    """

    name: str
    ranks: int
    question: str
    updates: int

    @property
    def source(self) -> str:
        """Its text, as it is shipped."""
        return (_FOLDER / f"{self.name}.py").read_text(encoding="utf-8")

    @property
    def repaired(self) -> str:
        """The same script without its faults."""
        return (_FOLDER / "repaired" / f"{self.name}.py").read_text(encoding="utf-8")


EXAMPLES = {
    one.name: one
    for one in (
        Example("classify", 2, "Two ranks take as long as one. Is that the network?", 96),
        Example("finetune", 2, "The loss falls at first, then stands still. Is the model too small?", 96),
        Example("resume", 1, "After each restart the loss takes a while to come back. Is that usual?", 35),
    )
}
"""By name."""


def example(name: str, folder: Path | str = ".") -> Path:
    """Copy a script with faults, to look at, to examine and to repair.

    Args:
        name: classify, finetune or resume.
        folder: where to; made if it is not there. A file of that name is written over.

    Returns:
        The copy's path.

    Raises:
        UnknownName: there is no such example.
    """
    made = Path(folder) / f"{_named(name).name}.py"
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text(_named(name).source, encoding="utf-8")
    return made


def _named(name: str) -> Example:
    if name not in EXAMPLES:
        raise UnknownName("example", name, EXAMPLES)
    return EXAMPLES[name]


def repair(script: Path | str, *changes: tuple[str, str]) -> Diff:
    """Replace lines of a script and show what was changed.

    Args:
        script: its file, written over.
        changes: (what stands there, what is to stand there), each of which must be there once.

    Raises:
        UsageError: what is to be replaced does not stand there, or more than once.
    """
    path = Path(script)
    before = after = path.read_text(encoding="utf-8")
    for old, new in changes:
        if after.count(old) != 1:
            raise UsageError(
                f"{path.name} has {old!r} {after.count(old)} times, and a change wants it once: give more of the line"
            )
        after = after.replace(old, new)
    path.write_text(after, encoding="utf-8")
    return Diff(f"{path.name} before", f"{path.name} after", before, after, context=2)


def check(script: Path | str) -> CheckResult:
    """Check a repaired example: the doctor finds nothing in it, and it still trains as much as before.

    Args:
        script: a copy of an example, under its name, with your changes.

    Raises:
        UsageError: there is no such file.
        UnknownName: it is called as no example is.
    """
    path = Path(script)
    of = _named(path.stem)
    if not path.is_file():
        raise UsageError(f"there is no file {path} here; doctor.example({of.name!r}) makes it")
    seen = examine([str(path)], ranks=of.ranks)
    findings = [f"{verdict.detector}: {verdict.cause}" for verdict in seen.found]
    if seen.ended.code:
        findings.insert(0, f"the script ends with an error: {next(one.end for one in seen.ended.ranks if one.code)}")
    elif (made := updates(seen)) < of.updates // 2:
        findings.append(f"it makes {made} updates, and made {of.updates}: it is to train on")
    return CheckResult(findings)


def updates(seen: Diagnosis) -> int:
    """Steps of the optimizer that rank 0 made."""
    if seen.reading is None:
        return 0
    return sum(step.counts.get("updates", 0) for step in seen.reading.run.ranks[0].steps)


def invariants(*diagnoses: Diagnosis) -> str:
    """What must come out equal on every machine: what was found but for questions of time, and the number of updates."""
    lines = []
    for seen in diagnoses:
        found = sorted(f"{verdict.detector} ({verdict.reason})" for verdict in seen.untimed)
        lines.append(f"{Path(seen.command[0]).name} on {plural(len(seen.ended.ranks), 'rank')}: {updates(seen)} updates")
        lines += [f"  found: {one}" for one in found] or ["  nothing found"]
    return "\n".join(lines)
