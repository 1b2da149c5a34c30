"""Can each checkpoint be gone on from?

A checkpoint that several ranks write to one path is torn. One that lacks the state of the learning-rate schedule or of the
scaler restores the weights and starts these anew. One that is written over the last good one leaves none if the process
dies meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..verdict import Verdict, answering

NAME = "checkpoint-files"
QUESTION = "Can each checkpoint be gone on from?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Look at what each rank saved, where to, and what was in it."""
    run = record.run
    saves = [(log.head.rank, event.fields) for log in run.ranks for event in log.events if event.name == "torch_save"]
    if not saves:
        return _answer("not_applicable", "nothing-saved-with-torch-save")
    evidence = {"saves": Quantity(len(saves), "of all ranks"), "paths": Quantity(len({f["path"] for _, f in saves}))}
    writers = _writers(run)
    if writers:
        fields = next(fields for _, fields in saves if fields["path"] in writers)
        ranks = sorted(writers[str(fields["path"])])
        return _answer("found", "ranks-save-to-one-path", evidence, where=_where(fields), ranks=ranks)
    for lacks, reason in (("scheduler", "scheduler-not-saved"), ("scaler", "scaler-not-saved")):
        lacking = [fields for _, fields in saves if fields["optimizer"] and fields[f"has_{lacks}"] and not fields[lacks]]
        if lacking:
            return _answer("found", reason, evidence, where=_where(lacking[-1]))
    over = Counter(str(fields["path"]) for _, fields in saves if fields["over"] and fields["optimizer"])
    if over:
        path, times = over.most_common(1)[0]
        fields = next(fields for _, fields in saves if fields["path"] == path)
        return _answer("found", "written-over-the-last-one", evidence, where=_where(fields), times=times)
    return _answer("clear", "checkpoints-are-whole", evidence)


def _writers(run: Run) -> dict[str, set[int]]:
    """Paths that several ranks of one machine saved to, with the ranks."""
    by_path: dict[tuple[str, str], set[int]] = {}
    for log in run.ranks:
        for event in log.events:
            if event.name == "torch_save":
                by_path.setdefault((log.head.host, str(event.fields["path"])), set()).add(log.head.rank)
    return {path: ranks for (_, path), ranks in by_path.items() if len(ranks) > 1}


def _where(fields: Mapping[str, Any]) -> str | None:
    return str(fields["where"]) or None
