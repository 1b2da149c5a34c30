"""A script of one's own: what its probes recorded, asked every question there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeVar

from . import detect, labs
from .arguments import checked
from .detect.verdict import Verdicts
from .errors import RecordError
from .facade import Lab
from .record.quantity import Quantity
from .record.schema import Record
from .record.table import Table
from .report import report_of

Kind = TypeVar("Kind")
_ORDER = ("found", "inconclusive", "clear", "not_applicable")


@checked()
def judge(record: Record) -> Verdicts:
    """Ask a record the questions of its lab; a script's own record every question there is.

    Of a script's answers those that found something come first, then those that cannot tell, then those that are clear.
    Those that do not apply are last and not shown: `labkit.lab(SLUG).judge(record)` says what one lab's need.
    """
    return Script(record).verdicts if not record.lab else Lab(labs.spec(record.lab)).judge(record)


class Script:
    """What all labs together make of a script's record. Measures, tables and figures are those of the labs that apply.

    Attributes:
        left_out: by slug: why a lab's measures or tables could not be made of this record.
    """

    def __init__(self, record: Record) -> None:
        self.record = record
        self.left_out: dict[str, str] = {}

    @cached_property
    def verdicts(self) -> Verdicts:
        """The answer of every detector, in the order of `judge`."""
        of_labs = [name for spec in labs.specs() for name in spec.detectors]
        asked = [detect.ask(name, self.record) for name in dict.fromkeys([*of_labs, *detect.names()])]
        return Verdicts(sorted(asked, key=lambda verdict: _ORDER.index(verdict.status)), fold=True)

    @cached_property
    def labs(self) -> list[Lab]:
        """The labs of which a question could be answered, or would be by a longer run."""
        apply = {verdict.detector for verdict in self.verdicts if verdict.status != "not_applicable"}
        return [Lab(spec) for spec in labs.specs() if apply & set(spec.detectors)]

    def measures(self) -> dict[str, Quantity]:
        """The measures, by name; of two of one name the first lab's."""
        found: dict[str, Quantity] = {}
        for of_lab in self._of_each(Lab.measures):
            found |= {name: quantity for name, quantity in of_lab.items() if name not in found}
        return found

    def tables(self) -> list[Table]:
        """The tables."""
        return [table for of_lab in self._of_each(Lab.tables) for table in of_lab]

    def _of_each(self, of_lab: Callable[[Lab, Record], Kind]) -> Iterator[Kind]:
        """What each lab makes of the record, but those that can make nothing of it, which `left_out` names."""
        for lab in self.labs:
            try:
                yield of_lab(lab, self.record)
            except RecordError as error:
                self.left_out[lab.spec.slug] = str(error)

    def figures(self) -> dict[str, Lab]:
        """The names of the figures that may be drawn, each with a lab that draws it."""
        found: dict[str, Lab] = {}
        for lab in self.labs:
            found |= {name: lab for name in lab.spec.figures if name not in found}
        return found

    def report(self) -> dict[str, Any]:
        """Measures and verdicts as plain data, as `--json` writes them."""
        return report_of(self.record, "", self.measures(), self.verdicts)
