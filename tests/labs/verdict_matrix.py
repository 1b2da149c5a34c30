"""What every detector may say of every variant of every lab: the table that test_verdict_matrix.py holds records to.

The rows of a lab lie in its own file of `lab_cases`. What is not written there follows the rule: in its own lab a detector
may say anything but `found`; in another lab too, if it can answer for any program, and else it is not applicable. A detector
of times may answer `inconclusive` wherever it must be found or clear, for a machine that does other work hides both; it
never answers the opposite.
"""

from __future__ import annotations

import importlib.util

import lab_cases
import pytest
from lab_case import Row

from labkit import detect, labs
from labkit.detect.verdict import Verdict

BUT_FOUND = "CIN"
"""Anything but an accusation."""

MATRIX = lab_cases.by_slug()
ANY_PROGRAM = {name for case in MATRIX.values() for name in case.any_program}
TIMED = {name for name in detect.names() if detect.is_timed(name)}

EACH = [(slug, name) for slug, rows in MATRIX.items() for name in rows.rows]
"""(lab, variant) of each row."""

LETTER = {"found": "F", "clear": "C", "inconclusive": "I", "not_applicable": "N"}


def allowed(slug: str, variant: str, detector: str) -> str:
    """Statuses that the table allows."""
    rows = MATRIX[slug]
    cell = {**rows.every, **rows.rows[variant].cells}.get(detector)
    if cell is None:
        return BUT_FOUND if detector in labs.spec(slug).detectors or detector in ANY_PROGRAM else "N"
    open_still = "I" if detector in TIMED and cell.allowed in ("F", "C") else ""
    return cell.allowed + open_still


def own_faults(slug: str, variant: str) -> list[str]:
    """The lab's own detectors that must find something in a variant."""
    cells = MATRIX[slug].rows[variant].cells
    return [
        name for name in labs.spec(slug).detectors if name in cells and cells[name].allowed == "F" and not cells[name].why
    ]


def here(row: Row) -> Row:
    """The row, if this machine has what it needs; else the test is skipped."""
    missing = row.needs == "gpu" or (row.needs == "deepspeed" and importlib.util.find_spec("deepspeed") is None)
    if missing:
        pytest.skip(f"needs {row.needs}")
    return row


def offences(slug: str, variant: str, verdicts: list[Verdict]) -> list[str]:
    """What the verdicts say against the table."""
    return [
        f"{verdict.detector} is {verdict.status}, allowed is {may_say}: {verdict.cause}"
        for verdict in verdicts
        if LETTER[verdict.status] not in (may_say := allowed(slug, variant, verdict.detector))
    ]
