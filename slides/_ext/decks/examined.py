"""Scripts that the doctor examined, in the place of a lab's runs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import labkit
from labkit.detect.verdict import Verdicts
from labkit.doctor.lessons import EXAMPLES
from labkit.errors import UnknownName, UsageError
from labkit.reading import picture_of, reading_of
from labkit.record.quantity import Quantity
from labkit.record.schema import Record
from labkit.record.table import Table
from labkit.results import Comparison, Diff
from labkit.view.picture import Picture

from .records import Records

NAME = "doctor"
REPAIRED = "-repaired"


class Examined(Records):
    """The examples of the doctor's lesson: `classify`, and `classify-repaired`, the same without its faults."""

    def __init__(self, plans: Mapping[str, Mapping[str, Any]], *, kept: Path, quick: bool, fresh: bool) -> None:
        self.lab = self
        self.slug = NAME
        self.by_name = {name: self.kept_or_made(name, dict(plan or {}), kept, quick, fresh) for name, plan in plans.items()}

    def completed(self, name: str, plan: dict[str, Any]) -> dict[str, Any]:
        if plan:
            raise UsageError(f"an example takes no keywords; given {', '.join(plan)} for {name}")
        return {"source": _source(name)}

    def make(self, name: str, plan: dict[str, Any], folder: Path) -> Record:
        example = EXAMPLES[name.removesuffix(REPAIRED)]
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as work:
            try:
                os.chdir(work)  # it saves where it runs
                Path(f"{example.name}.py").write_text(plan["source"], encoding="utf-8")
                labkit.doctor.examine(f"{example.name}.py", ranks=example.ranks, record=folder)
            finally:
                os.chdir(here)
        return labkit.read(folder)

    # What blocks ask of a lab

    def judge(self, record: Record) -> Verdicts:
        return reading_of(record).verdicts

    def measures(self, record: Record) -> dict[str, Quantity]:
        return reading_of(record).measures

    def tables(self, record: Record) -> list[Table]:
        return reading_of(record).tables

    def compare(self, *records: Record) -> Comparison:
        names = {id(record): name for name, record in self.by_name.items()}
        columns = {names[id(record)]: self.measures(record) for record in records}
        return Comparison(columns, list(dict.fromkeys(record.provenance.label() for record in records)))

    def figure(self, name: str, *records: Record, **choices: Any) -> Picture:
        figures = reading_of(records[0]).figures
        if name not in figures:
            raise UnknownName("figure of this record", name, figures)
        return picture_of(figures[name], name, *records, **choices)

    def diff(self, before: str, after: str) -> Diff:
        return Diff(before, after, _source(before), _source(after))


def _source(name: str) -> str:
    of = name.removesuffix(REPAIRED)
    if of not in EXAMPLES:
        raise UnknownName("example", of, EXAMPLES)
    return EXAMPLES[of].repaired if name.endswith(REPAIRED) else EXAMPLES[of].source
