"""What the tests know of one lab. Each lab states it in one file of `lab_cases`; those who judge all labs collect it there.

Rows of the table of verdicts: a cell is a set of statuses: F found, C clear, I inconclusive, N not applicable. A row lists
the variant's own fault, what else is truly wrong with it (with the reason), and what must be clear; what is not written
follows the rule of `verdict_matrix`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Cell:
    """Which statuses are allowed, and why where it is not plain."""

    allowed: str
    why: str = ""


F, C = Cell("F"), Cell("C")

READS = ("rank-duplicates", "worker-duplicates", "coverage", "order")
"""What can be asked of whatever reads samples in epochs."""


def also(why: str, allowed: str = "F") -> Cell:
    """Found beside the variant's own fault, for a reason."""
    return Cell(allowed, why)


def may(why: str) -> Cell:
    """Found or not, as conditions are, for a reason."""
    return Cell("FCIN", why)


ONE_BATCH = also("one batch was chosen on purpose, and the verdict says that this may be so")


@dataclass(frozen=True)
class Row:
    """One variant.

    Attributes:
        cells: by detector, where they differ from the column's.
        no_fault: why none of the detectors is to find something; empty where the variant has a fault of its own.
        how: settings in which it differs from its lab's.
        needs: what this machine must have, "gpu" or "deepspeed".
    """

    cells: dict[str, Cell] = field(default_factory=dict)
    no_fault: str = ""
    how: dict[str, Any] = field(default_factory=dict)
    needs: str = ""


def row(no_fault: str = "", *, how: dict[str, Any] | None = None, needs: str = "", **cells: Cell) -> Row:
    """A row; a detector's name is written with underscores."""
    return Row({name.replace("_", "-"): cell for name, cell in cells.items()}, no_fault, how or {}, needs)


def clear(*detectors: str) -> dict[str, Cell]:
    return dict.fromkeys(detectors, C)


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A fault in what ranks run that the lesson's invariants must show: in `file`, `before` becomes `after`.

    Attributes:
        again: a statement of the lesson that makes the run again which has the fault.
    """

    file: str
    before: str
    after: str
    again: str


@dataclass(frozen=True, kw_only=True)
class OnALink:
    """A run over an emulated link, whose part in a record is simulated.

    Attributes:
        how: small settings.
        simulated: measures that the link has a part in.
    """

    how: Mapping[str, Any]
    simulated: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LessonCase:
    """One lesson, of a lab or of none.

    Attributes:
        small: parameters with which papermill executes it in seconds.
        says: asserts what its cell of invariants prints with them.
        mutation: what breaks the invariants.
        guess_settled_by_figure: whether the deck settles the guess with a figure, so that no sentence holds its number.
        first: a cell of the tests' own, executed once the parameters are checked.
    """

    small: Mapping[str, Any]
    says: Callable[[str], None]
    mutation: Mutation
    guess_settled_by_figure: bool = False
    first: str = ""


@dataclass(frozen=True, kw_only=True)
class LabCase(LessonCase):
    """One lab, with its lesson.

    Attributes:
        slug: which.
        how: small settings in which the faults of the variants show.
        rows: by variant; of a survey, the one row is called "survey".
        every: cells that hold for each variant that has none of its own.
        any_program: detectors of this lab that can answer for programs of other labs too: anything but `found`.
        on_a_link: of a lab of several ranks, what an emulated link makes of it.
        own_script: detectors for which the code under "Your own script" in the lesson is enough by itself.
    """

    slug: str
    how: Mapping[str, Any]
    rows: Mapping[str, Row]
    every: Mapping[str, Cell] = field(default_factory=dict)
    any_program: tuple[str, ...] = ()
    own_script: tuple[str, ...] = ()
    on_a_link: OnALink | None = None
