"""What other programs on the machine do to verdicts about times, shared by their detectors.

A detector of times says so by `TIMED = True`. How much more it asks of a run that others hindered is its own matter; that it
is said with the answer is done here.
"""

from __future__ import annotations

from dataclasses import replace

from ..record.load import heaviest
from ..record.quantity import Quantity
from ..record.schema import Record, Run
from .catalogue import said
from .verdict import Verdict

MOST = 0.8
"""Of the cores that a run wanted: others are not reckoned to have taken more, or nothing could be said of it at all."""

VARIES = 1.25
"""By what factor times of a run vary that others hinder much, at least."""


def pressure(*runs: Run) -> float:
    """Runnable threads to a core in the most crowded of the runs: 1 where each had a core, and where nobody looked."""
    return max((run.load.pressure for run in runs if run.load is not None), default=1.0)


def is_heavy(*runs: Run) -> bool:
    """Whether other programs took so much of the cores of one of the runs that a small time says nothing of the program."""
    return any(run.load is not None and run.load.heavy for run in runs)


def hindered(run: Run) -> float:
    """As many times as long a run may have taken because of others: 1 where they took nothing, or nobody looked."""
    return 1 / (1 - min(run.load.share, MOST)) if run.load is not None and run.load.matters else 1.0


def uneven(one: Run, other: Run) -> float:
    """By what factor the times of two runs may differ because others hindered one of them more; 1 on a quiet machine.

    Where others took much, what they take varies within each of the runs too.
    """
    factor = hindered(one) / hindered(other)
    return max(factor, 1 / factor, VARIES if is_heavy(one, other) else 1.0)


def said_with(verdict: Verdict, record: Record) -> Verdict:
    """The verdict, with what other programs used where that matters; where there is no answer it is part of the cause."""
    load = heaviest([record.provenance.load, *(run.load for run in record.runs.values())])
    if load is None or not load.matters or verdict.status == "not_applicable":
        return verdict
    evidence = {**verdict.evidence, "other_programs": Quantity(f"{load.during:.1f} of {load.cores}", "cores meanwhile")}
    meanwhile = (said("other-programs-meanwhile", used=load.during, cores=load.cores),)
    return replace(verdict, evidence=evidence, notes=verdict.notes + (meanwhile if verdict.status == "inconclusive" else ()))
