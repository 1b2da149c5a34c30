"""What other programs on the machine do to verdicts about times, shared by their detectors.

A detector of times says so by `TIMED = True`. How much more it asks of a run that others hindered is its own matter; that it
is said with the answer is done here.
"""

from __future__ import annotations

from dataclasses import replace

from ..record.load import heaviest
from ..record.measures import Quantity
from ..record.schema import Record, Run
from .verdict import Verdict

QUIET = "on a machine that does nothing else"


def pressure(*runs: Run) -> float:
    """Runnable threads to a core in the most crowded of the runs: 1 where each had a core, and where nobody looked."""
    return max((run.load.pressure for run in runs if run.load is not None), default=1.0)


def is_heavy(*runs: Run) -> bool:
    """Whether other programs took so much of the cores of one of the runs that a small time says nothing of the program."""
    return any(run.load is not None and run.load.heavy for run in runs)


def said_with(verdict: Verdict, record: Record) -> Verdict:
    """The verdict, with what other programs used where that matters; where there is no answer it is part of the cause."""
    load = heaviest([record.provenance.load, *(run.load for run in record.runs.values())])
    if load is None or not load.matters or verdict.status == "not_applicable":
        return verdict
    evidence = {**verdict.evidence, "other_programs": Quantity(f"{load.during:.1f} of {load.cores}", "cores meanwhile")}
    cause = f"{verdict.cause}; {load.said} meanwhile" if verdict.status == "inconclusive" else verdict.cause
    return replace(verdict, evidence=evidence, cause=cause)
