"""A record, asked: its verdicts, measures, tables and figures, each worked out once, whoever asks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import detect, labs
from .arguments import checked
from .detect.differences import Side, differences
from .detect.verdict import Verdicts
from .errors import RecordError, UnknownName, UsageError
from .labs.spec import LabSpec
from .record.blame import blamed_on, understood
from .record.own_names import apart
from .record.quantity import Quantity
from .record.schema import Origin, Record
from .record.store import named, read_record
from .record.table import Table
from .record.unknown_names import Unknown, unknown_names
from .report import report_of

if TYPE_CHECKING:
    from .view.live.timeline import Timeline
    from .view.picture import Picture

Kind = TypeVar("Kind")
_ORDER = ("found", "inconclusive", "clear", "not_applicable")


@dataclass(frozen=True)
class Made(Generic[Kind]):
    """What one lab makes of a record, or why it can make nothing of it."""

    spec: LabSpec
    made: Kind | None
    error: RecordError | None = None

    def whole(self) -> Kind:
        """What was made.

        Raises:
            RecordError: why nothing was.
        """
        if self.error is not None:
            raise self.error
        assert self.made is not None
        return self.made


class Reading(Record, frozen=True, dict=True):
    """A record that can be asked. It takes a record's place everywhere; what it was asked once, it knows.

    Made by `Lab.run`, `labkit.read` and `reading_of`. `origin` says who had the record made: a lab, or a script.

    Attributes:
        by: the lab whose questions are asked; None asks every question there is.
    """

    by: LabSpec | None = None

    @cached_property
    def verdicts(self) -> Verdicts:
        """The answers, in the order of the lab's questions.

        Where every question is asked, those that found something come first, then those that cannot tell, then those that
        are clear. Those that do not apply are last and not shown.
        """
        if self.by is not None:
            return Verdicts(detect.ask(name, self) for name in self.by.detectors)
        of_labs = [name for spec in labs.specs() for name in spec.detectors]
        asked = [detect.ask(name, self) for name in dict.fromkeys([*of_labs, *detect.names()])]
        return Verdicts(sorted(asked, key=lambda verdict: _ORDER.index(verdict.status)), fold=True)

    @cached_property
    def specs(self) -> tuple[LabSpec, ...]:
        """The labs whose measures, tables and figures it has: the one that asks, else all that could answer a question."""
        if self.by is not None:
            return (self.by,)
        apply = {verdict.detector for verdict in self.verdicts if verdict.status != "not_applicable"}
        return tuple(spec for spec in labs.specs() if apply & set(spec.detectors))

    @cached_property
    def measured(self) -> tuple[Made[dict[str, Quantity]], ...]:
        """What each of `specs` measures."""
        return tuple(self._made(spec, spec.measures) for spec in self.specs)

    @cached_property
    def tabled(self) -> tuple[Made[list[Table]], ...]:
        """The tables of each of `specs`."""
        return tuple(self._made(spec, spec.tables or _no_tables) for spec in self.specs)

    def _made(self, spec: LabSpec, make: Callable[[Record], Kind]) -> Made[Kind]:
        try:
            with understood(self):
                return Made(spec, make(apart(self).record))
        except RecordError as error:
            return Made(spec, None, error)

    @cached_property
    def measures(self) -> dict[str, Quantity]:
        """The measures that could be made, by name; of two of one name the first lab's. `left_out` names the others."""
        found: dict[str, Quantity] = {}
        for one in self.measured:
            found |= {name: quantity for name, quantity in (one.made or {}).items() if name not in found}
        return found

    @cached_property
    def main_measures(self) -> tuple[str, ...]:
        """The names of the measures that a person reads first; all of them where no lab says which.

        None of a comparison whose measures have the names of what is compared before them: its tables say the same.
        """
        main = [name for spec in self.specs for name in spec.main_measures]
        return tuple(name for name in dict.fromkeys(main or self.measures) if name in self.measures)

    @cached_property
    def tables(self) -> list[Table]:
        """The tables that could be made."""
        return [table for one in self.tabled for table in one.made or ()]

    @cached_property
    def left_out(self) -> list[str]:
        """Why measures or tables could not be made, a sentence each; empty where all were."""
        return list(dict.fromkeys(str(one.error) for one in (*self.measured, *self.tabled) if one.error is not None))

    @cached_property
    def unknown(self) -> list[Unknown]:
        """The names in a script's record that labkit does not know, so that no question asks for them."""
        return [] if self.origin is Origin.LAB else unknown_names(self)

    @cached_property
    def figures(self) -> dict[str, LabSpec]:
        """The names of the figures that may be drawn, each with a lab that has it."""
        found: dict[str, LabSpec] = {}
        for spec in self.specs:
            found |= {name: spec for name in spec.figures if name not in found}
        return found

    def figure(self, name: str, **choices: Any) -> Picture:
        """Draw a figure of it; `choices` are what the figure lets a reader choose.

        Raises:
            UnknownName: with the names there are.
            UsageError: it lacks what the figure shows.
        """
        if name not in self.figures:
            raise UnknownName("figure of this record", name, self.figures)
        return picture_of(self.figures[name], name, self, **choices)

    def timeline(self, beneath: Record | None = None) -> Timeline:
        """What each rank did when, to zoom and to step through in a notebook; elsewhere a picture of the first steps.

        Args:
            beneath: another record, laid beneath this one on the same axes.

        Raises:
            UsageError: it has no steps.
        """
        from .view.figures import figure
        from .view.live.timeline import Timeline

        title = f"{self.variant}: {self.run.ranks_said}, {self.run.steps_said}, {self.run.wall_s:.2f} s"
        with blamed_on(self):
            return Timeline(self, title, figure("timeline")(apart(self).record), beneath)

    @property
    def waste(self) -> float:
        """The largest share of device time that a verdict says is wasted; 0 where none does."""
        return max((verdict.waste or 0.0 for verdict in self.verdicts), default=0.0)

    def report(self) -> dict[str, Any]:
        """Measures and verdicts as plain data, as `--json` writes them."""
        asked_by = "" if self.by is None else self.by.slug
        slug = self.lab if self.origin is Origin.LAB else asked_by
        return report_of(self, slug, self.measures, self.verdicts)


def _no_tables(record: Record) -> list[Table]:
    return []


def reading_of(record: Record, by: LabSpec | None = None) -> Reading:
    """The reading of a record, the same one each time: what was asked of it once is not worked out again.

    Args:
        by: the lab whose questions are asked; if None a lab's record is asked by its lab, and a script's by all.
    """
    if by is None and record.origin is Origin.LAB:
        by = labs.spec(record.lab)
    if isinstance(record, Reading) and record.by is by:
        return record
    beside: dict[str, Any] = record.__dict__  # pyright: ignore[reportAssignmentType] - beside the fields, which are frozen
    kept: dict[str, Reading] = beside.setdefault("_readings", {})
    slug = "" if by is None else by.slug
    if slug not in kept or kept[slug].by is not by:
        kept[slug] = Reading(**{name: getattr(record, name) for name in Record.__struct_fields__}, by=by)
    return kept[slug]


@checked()
def read(path: Path | str = "last", *, lab: str | None = None) -> Reading:
    """Read what a lab or a script recorded, ready to be asked: `labkit.read("my_run").verdicts`.

    Args:
        path: a record's folder, that of a script's probe files, a name of `labkit runs`, or "last" for the newest run.
        lab: the slug of the lab whose questions are asked. If None a lab's record is asked by its lab, a script's by all.

    Raises:
        UnknownName: there is no such lab.
        RecordError: there is no record, or it cannot be read.
    """
    by = None if lab is None else labs.spec(lab)  # wrong use is said before anything is read
    return reading_of(read_record(named(str(path))), by)


@checked()
def judge(record: Record) -> Verdicts:
    """Ask a record the questions of its lab; a script's own record every question there is.

    Of a script's answers those that found something come first, then those that cannot tell, then those that are clear.
    Those that do not apply are last and not shown: `labkit.lab(SLUG).judge(record)` says what one lab's need.
    """
    return reading_of(record).verdicts


@checked()
def differences_of(before: Record, now: Record) -> list[str]:
    """How a run differs from one before it: settings, answers, step times, losses, measures, a sentence each.

    Both are asked the questions of the second one's lab.

    Raises:
        UsageError: they are of different labs.
    """
    if before.lab != now.lab:
        raise UsageError(
            f"a run of {before.lab or 'a script'} and one of {now.lab or 'a script'} have nothing to compare; give two runs "
            "of one lab"
        )
    sides = []
    for record in (before, now):
        reading = reading_of(record)
        exact = [name for spec in reading.specs for name in spec.exact_measures]
        sides.append(Side(record, reading.measures, reading.main_measures, exact, reading.verdicts))
    return differences(*sides)


def picture_of(spec: LabSpec, name: str, *records: Record, **choices: Any) -> Picture:
    """Draw one of a lab's figures from one record, or from several side by side.

    Args:
        choices: what the figure lets a reader choose.

    Raises:
        UnknownName: with the names there are.
        UsageError: a choice that there is not, or a record that lacks what the figure shows.
    """
    from .view.figures import figure

    if name not in spec.figures:
        raise UnknownName(f"figure of {spec.slug}", name, spec.figures)
    draw = figure(name)
    if unknown := [choice for choice in choices if choice not in inspect.signature(draw).parameters]:
        raise UsageError(f"the figure {name} has no choice {', '.join(unknown)}; leave it out")
    with blamed_on(*records):
        return draw(*(apart(record).record for record in records), **choices)
