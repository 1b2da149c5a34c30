"""Every question that the doctor has, with its answer in a few words, by subject."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..detect.explained import explained, subject_of, subjects
from ..detect.verdict import Verdict

ORDER = ("found", "inconclusive", "clear", "not_applicable")
"""Answers as a report has them, the most urgent first."""

WORDS = {"found": "found", "inconclusive": "undecided", "clear": "clear", "not_applicable": "not seen"}
"""What a check-list calls an answer."""


@dataclass(frozen=True)
class Item:
    """One question.

    Attributes:
        verdict: its answer.
        number: of the finding, from 1, as the report counts them; None where nothing was found.
        needs: what the doctor would need and one run of a script does not bring; "" where it could have answered.
    """

    verdict: Verdict
    number: int | None = None
    needs: str = ""

    @property
    def why(self) -> str:
        """A few words: what was seen, or why it was not."""
        return self.needs or self.verdict.cause


def checklist(verdicts: Iterable[Verdict]) -> dict[str, list[Item]]:
    """The answers by subject; within one those that found something first. Findings are counted in the order given."""
    found: dict[str, list[Item]] = {subject: [] for subject in subjects()}
    number = 0
    for verdict in verdicts:
        number += verdict.status == "found"
        told = explained(verdict.detector)
        needs = told.needs if told is not None and verdict.status == "not_applicable" else ""
        found.setdefault(subject_of(verdict.detector), []).append(
            Item(verdict, number if verdict.status == "found" else None, needs)
        )
    for items in found.values():
        items.sort(key=lambda item: (ORDER.index(item.verdict.status), item.verdict.detector))
    return {subject: items for subject, items in found.items() if items}


def counted(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """How many questions have which answer, by status; all four, in the order of a report."""
    statuses = [verdict.status for verdict in verdicts]
    return {status: statuses.count(status) for status in ORDER}
