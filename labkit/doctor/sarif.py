"""Findings as SARIF 2.1.0, which code hosts show beside the lines of a change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..detect.verdict import Verdict
from .diagnosis import Diagnosis

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVEL = {"found": "error", "inconclusive": "note"}


def sarif(diagnosis: Diagnosis, version: str) -> dict[str, Any]:
    """The log: a result for each finding, and a note for each question that stays open. Places are relative to the folder
    that the script was started from.

    Args:
        version: labkit's.
    """
    told = [verdict for verdict in diagnosis.verdicts if verdict.status in _LEVEL]
    rules = {verdict.reason: verdict for verdict in told}
    driver = {
        "name": "labkit doctor",
        "version": version,
        "rules": [
            {
                "id": reason,
                "name": verdict.detector,
                "shortDescription": {"text": verdict.question},
                "help": {"text": verdict.fix or verdict.cause},
            }
            for reason, verdict in rules.items()
        ],
    }
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [_result(verdict, diagnosis.command[0]) for verdict in told]}],
    }


def _result(verdict: Verdict, script: str) -> dict[str, Any]:
    advice = f" Fix: {verdict.fix}." if verdict.fix else ""
    path, line = _place(verdict.where, script)
    region = {"region": {"startLine": line}} if line is not None else {}
    return {
        "ruleId": verdict.reason,
        "level": _LEVEL[verdict.status],
        "message": {"text": f"{verdict.cause}.{advice}"},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": path}, **region}}],
    }


def _place(where: str | None, script: str) -> tuple[str, int | None]:
    """(path, line): where the finding is, or the script where no line is known."""
    path, colon, line = (where or "").rpartition(":")
    if colon and line.isdigit():
        return Path(path).as_posix(), int(line)
    return Path(script).as_posix(), None
