"""Can training resume from each checkpoint?

A checkpoint that several ranks write to one path is torn, and so is one whose tensors training changes while a thread
writes them. One that lacks the state of the learning-rate schedule, of the scaler or of averaged weights restores the rest
and starts these anew. One that is written over the last good one leaves none if the process dies meanwhile.

Files without an optimizer's state are exports: nobody goes on from them, and nothing is missing in them. States may lie in
several files that are written together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..verdict import Verdict, answering
from .resumed import resumes

NAME = "checkpoint-files"
QUESTION = "Can training resume from each checkpoint?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

Fields = Mapping[str, Any]

LACKS = (
    ("scheduler", "scheduler-not-saved"),
    ("scaler", "scaler-not-saved"),
    ("average", "average-not-saved"),
)


def detect(record: Record) -> Verdict:
    """Look at what each rank saved, where to, and what was in it."""
    run = record.run
    saves = [(log.head.rank, e.step, e.fields) for log in run.ranks for e in log.events if e.name == "torch_save"]
    if not saves:
        return _answer("not_applicable", "nothing-saved")
    paths = {fields["path"] for _, _, fields in saves}
    evidence = {"saves": Quantity(len(saves), "of all ranks"), "paths": Quantity(len(paths))}
    for verdict in (_of_ranks(run, evidence), _of_threads(saves, evidence), _of_content(run, saves, evidence)):
        if verdict is not None:
            return verdict
    return _of_place(saves, evidence)


def _of_ranks(run: Run, evidence: dict[str, Quantity]) -> Verdict | None:
    """Whether several ranks of one machine wrote to one path, or took each other's file away."""
    by_path: dict[tuple[str, str], dict[int, Fields]] = {}
    moved: dict[tuple[str, str], dict[int, list[str]]] = {}
    for log in run.ranks:
        for event in log.events:
            path = (log.head.host, str(event.fields.get("path", "")))
            if event.name == "torch_save" and path[1] and not event.fields.get("shared"):
                by_path.setdefault(path, {})[log.head.rank] = event.fields
            elif event.name == "checkpoint_moved":
                moved.setdefault(path, {}).setdefault(log.head.rank, []).append(str(event.fields["content"]))
    for writers in by_path.values():
        if len(writers) > 1:
            where = _where(next(iter(writers.values())))
            return _answer("found", "ranks-save-to-one-path", evidence, where=where, ranks=sorted(writers))
    for path, of in moved.items():
        if len(of) > 1 and len({contents[-1] for contents in of.values()}) > 1:
            events = [e for log in run.ranks for e in log.events if e.name == "checkpoint_moved"]
            where = next(_where(e.fields) for e in events if e.fields["path"] == path[1])
            return _answer("found", "ranks-replace-one-file", evidence, where=where, ranks=sorted(of))
    return _of_parts(run, evidence)


def _of_parts(run: Run, evidence: dict[str, Quantity]) -> Verdict | None:
    """Whether ranks of one machine that write a checkpoint together, each its parts, put them into different folders."""
    if len({log.head.host for log in run.ranks}) > 1:
        return None
    each = [[e.fields for e in log.events if e.name == "torch_save" and e.fields.get("shared")] for log in run.ranks]
    if len({len(of_rank) for of_rank in each}) > 1:
        return None
    for together in zip(*each, strict=True):
        paths = {str(fields["path"]) for fields in together} - {""}
        if len(paths) == run.world_size > 1:
            return _answer("found", "parts-in-different-folders", evidence, where=_where(together[0]), folders=len(paths))
    return None


def _of_threads(saves: Sequence[tuple[int, int, Fields]], evidence: dict[str, Quantity]) -> Verdict | None:
    """Whether training changed what a thread was writing, or the script ended before it was done."""
    for _, _, fields in saves:
        live, meanwhile = int(fields.get("live", 0)), int(fields.get("meanwhile", 0))
        more = evidence | {"shared": Quantity(live, "tensors"), "meanwhile": Quantity(meanwhile, "updates")}
        if live and meanwhile and fields.get("in_thread"):
            return _answer("found", "torn-by-training", more, where=_where(fields), tensors=live, updates=meanwhile)
    for _, _, fields in saves:
        if not fields.get("finished", True):
            return _answer("found", "save-not-finished", evidence, where=_where(fields))
    return None


def _of_content(run: Run, saves: Sequence[tuple[int, int, Fields]], evidence: dict[str, Quantity]) -> Verdict | None:
    """Whether a state that the script has is in none of the files that are written together."""
    together: dict[tuple[int, int], list[Fields]] = {}
    for rank, step, fields in saves:
        together.setdefault((rank, step), []).append(fields)
    anew = any(int(one.fields["schedule_at"]) > 1 and not one.fields["schedule_given"] for one in resumes(run))
    unsure = None
    for lacks, reason in LACKS:
        ever = any(fields.get(lacks) for _, _, fields in saves)
        for of in together.values():
            whole = [fields for fields in of if fields["optimizer"]]
            if not whole or not any(fields.get(f"has_{lacks}") for fields in whole) or any(f.get(lacks) for f in of):
                continue
            if lacks == "average" and ever:
                continue
            if lacks == "scheduler" and (anew or whole[-1].get("rederived")):
                unsure = _answer("inconclusive", "schedule-may-be-made-anew", evidence)
                continue
            return _answer("found", reason, evidence, where=_where(whole[-1]))
    return unsure


def _of_place(saves: Sequence[tuple[int, int, Fields]], evidence: dict[str, Quantity]) -> Verdict:
    whole = [fields for _, _, fields in saves if fields["optimizer"]]
    over = Counter(str(fields["path"]) for fields in whole if fields["over"] and not fields.get("others", 0))
    if over:
        path, times = over.most_common(1)[0]
        fields = next(fields for fields in whole if fields["path"] == path)
        # many a right script does so, and it costs something only where the process dies within those milliseconds
        return _answer("inconclusive", "written-over-the-last-one", evidence, where=_where(fields), times=times)
    return _answer("clear", "checkpoints-are-whole" if whole else "weights-are-exported", evidence)


def _where(fields: Fields) -> str | None:
    return str(fields["where"]) or None
