"""A kept run in one line: when, what, with which settings, and what was found."""

from __future__ import annotations

from ..detect.verdict import Verdicts
from ..labs.spec import LabSpec
from ..record.kept import KeptVerdict, remember, remembered
from ..record.schema import Record
from ..record.store import KeptRun
from ..words import plural
from .palette import STATUS_MARK

MOST_NAMED = 2


def keep_verdict(record: Record, verdicts: Verdicts, labkit: str) -> KeptVerdict:
    """Keep what a list of runs says of a record, and return it."""
    found = kept_verdict(verdicts, labkit)
    remember(record.folder, found)
    return found


def kept_verdict(verdicts: Verdicts, labkit: str) -> KeptVerdict:
    """Verdicts in a few words: the names of those that found something, else of those that cannot tell."""
    for status in ("found", "inconclusive"):
        names = [verdict.detector for verdict in verdicts if verdict.status == status]
        if names:
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            return KeptVerdict(status, ", ".join(names[:MOST_NAMED]) + more, labkit)
    clear = any(verdict.status == "clear" for verdict in verdicts)
    return KeptVerdict("clear" if clear else "not_applicable", "", labkit)


def said_verdict(verdict: KeptVerdict | None) -> str:
    """A verdict as a list shows it: "✗ found rank-duplicates"; empty where none was kept."""
    if verdict is None or verdict.status not in STATUS_MARK:
        return ""
    return f"{STATUS_MARK[verdict.status]} {verdict.status.replace('_', ' ')} {verdict.said}".rstrip()


def said_settings(run: KeptRun, spec: LabSpec | None) -> str:
    """The settings that somebody chose: "batch 16, momentum 0.9, seed 3"."""
    chosen = {} if spec is None else spec.chosen_settings(run.variant, run.config)
    if run.provenance.seed:
        chosen["seed"] = run.provenance.seed
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in chosen.items())


def said_run(run: KeptRun, spec: LabSpec, labkit: str) -> str:
    """One line of a menu of the lab's runs."""
    when = run.provenance.date[5:16].replace("T", " ")
    parts = [when, run.variant, plural(run.provenance.world_size, "rank"), said_settings(run, spec)]
    return " · ".join(part for part in (*parts, said_verdict(remembered(run.folder, labkit))) if part)
