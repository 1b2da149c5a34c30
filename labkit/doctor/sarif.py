"""Findings as SARIF 2.1.0, which code hosts show beside the lines of a change."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import xxhash

from ..detect.explained import explanation
from ..detect.verdict import Verdict
from .diagnosis import Diagnosis
from .excerpts import place

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
FINGERPRINT = "labkitFinding/v1"
_LEVEL = {"found": "error", "inconclusive": "note"}
_ROOT = "%SRCROOT%"


def sarif(diagnosis: Diagnosis, version: str) -> dict[str, Any]:
    """The log: a result for each finding, and a note for each question that stays open.

    Places are relative to the root of the repository, where the script lies in one, else to the folder that it was started
    from. A result's fingerprint stays the same when lines are put in above it.

    Args:
        version: labkit's.
    """
    told = [verdict for verdict in diagnosis.verdicts if verdict.status in _LEVEL]
    rules = list(dict.fromkeys(verdict.reason for verdict in told))
    files = _Files(diagnosis)
    run = {
        "tool": {"driver": {"name": "labkit doctor", "version": version, "rules": [_rule(key, told) for key in rules]}},
        "automationDetails": {"id": f"labkit-doctor/{Path(diagnosis.command[0]).name}/"},
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository, or the folder of the run"}}},
        "invocations": [{"executionSuccessful": True}],
        "columnKind": "utf16CodeUnits",
        "results": [_result(verdict, rules.index(verdict.reason), files) for verdict in told],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(key: str, told: list[Verdict]) -> dict[str, Any]:
    """What a reason says, without the numbers of this run: equal in every log."""
    verdict = next(one for one in told if one.reason == key)
    known = explanation(key)
    fix = known.fix and f"\n\n```diff\n{known.fix}```"
    mechanism = known.told.mechanism if known.told is not None else known.cause
    return {
        "id": key,
        "name": verdict.detector,
        "shortDescription": {"text": verdict.question},
        "fullDescription": {"text": f"{known.cause}."},
        "help": {"text": known.advice or known.cause, "markdown": f"{mechanism}{fix}\n\n`labkit explain {key}` says more."},
        "defaultConfiguration": {"level": _LEVEL[verdict.status]},
        "properties": {"tags": [known.subject or "training"]},
    }


def _result(verdict: Verdict, rule: int, files: _Files) -> dict[str, Any]:
    advice = f" Fix: {verdict.fix}." if verdict.fix else ""
    location, identity = files.of(verdict)
    result: dict[str, Any] = {
        "ruleId": verdict.reason,
        "ruleIndex": rule,
        "level": _LEVEL[verdict.status],
        "message": {"text": f"{verdict.cause}.{advice}"},
        "locations": [{"physicalLocation": location}] if location else [],
        "partialFingerprints": {FINGERPRINT: xxhash.xxh3_128_hexdigest("\0".join([verdict.reason, *identity]).encode())},
    }
    if verdict.waste is not None:
        result["rank"] = round(100 * min(1.0, max(0.0, verdict.waste)), 1)
    return result


class _Files:
    """Where findings are, as SARIF names it."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        self._diagnosis = diagnosis
        self._start = diagnosis.root.resolve()
        self._root = next((one for one in (self._start, *self._start.parents) if (one / ".git").exists()), self._start)

    def of(self, verdict: Verdict) -> tuple[dict[str, Any], list[str]]:
        """(physicalLocation, what tells it from others): the whole script where no line is known, {} where no file is."""
        found = place(verdict.where)
        path = self._file(found[0] if found else "") or self._script()
        if path is None:
            return {}, [verdict.where or ""]
        location: dict[str, Any] = {"artifactLocation": self._artifact(path)}
        said = [location["artifactLocation"]["uri"]]
        if found is not None and self._file(found[0]) is not None:
            line = self._diagnosis.excerpt(verdict)
            location["region"] = {"startLine": found[1], **({"snippet": {"text": line.text}} if line is not None else {})}
            said.append(line.text if line is not None else "")
        return location, said

    def _file(self, name: str) -> Path | None:
        path = self._start / name
        return path if name and path.is_file() else None

    def _script(self) -> Path | None:
        """The script's file; of a module the file that `python -m` runs."""
        name = self._diagnosis.command[0]
        module = name.replace(".", "/")
        return self._file(name) or self._file(f"{module}.py") or self._file(f"{module}/__main__.py")

    def _artifact(self, path: Path) -> dict[str, str]:
        path = path.resolve()
        if path.is_relative_to(self._root):
            return {"uri": quote(path.relative_to(self._root).as_posix()), "uriBaseId": _ROOT}
        return {"uri": path.as_uri()}
