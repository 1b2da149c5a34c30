"""Does the model begin with what it was given?

A model that is built without memory gets it later, filled with whatever the memory held: what nobody initialises or loads
afterwards stays so, buffers that are not saved above all. Parameters that are one tensor in two places may become two on the
way, and from then on each learns by itself.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..verdict import Verdict, answering
from .measures import Held, differing, held, listed

NAME = "model-start"
QUESTION = "Does the model begin with what it was given?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Look at each model as its first pass of training begins, on every rank."""
    run = record.run
    starts = [(log.head.rank, event.fields) for log in run.ranks for event in log.events if event.name == "model_start"]
    if not starts:
        return _answer("not_applicable", "no-start-seen")
    evidence = {"looked_at": Quantity(len(starts), "models, on all ranks together")}
    where = str(run.fact("loop_where", "")) or None
    for what, reason in _FAULTS:
        of_ranks = {rank: fields for rank, fields in starts if int(fields[what])}
        if not of_ranks:
            continue
        first = next(iter(of_ranks.values()))
        place = str(first.get("untied_where", "")) if what == "untied" else where
        ranks = sorted(of_ranks)
        names = str(first[_NAMES[what]])
        evidence["tensors"] = Quantity(int(first[what]), "on a rank")
        return _answer("found", reason, evidence, where=place or None, names=names, ranks=ranks)
    return _of_buffers(run, evidence)


_FAULTS = (
    ("unwritten", "parameters-never-written"),
    ("unwritten_buffers", "buffers-never-written"),
    ("unfit", "weights-not-finite-at-the-start"),
    ("untied", "tied-tensors-parted"),
)
_NAMES = {
    "unwritten": "unwritten_names",
    "unwritten_buffers": "unwritten_buffer_names",
    "unfit": "unfit_names",
    "untied": "untied_names",
}


def _of_buffers(run: Run, evidence: dict[str, Quantity]) -> Verdict:
    """Buffers of one name that differ between ranks, where the weights are the same."""
    for one in held(run):
        apart = _buffers_apart(one)
        if one.start and apart and one.comparable and not one.apart and run.world_size > 1:
            known = str(one.of_rank[0].get("named", "")).partition("|")[2].split()
            names = listed([known[at] for at in apart if at < len(known)]) or "buffers"
            return _answer("inconclusive", "buffers-differ-at-the-start", evidence, names=names)
    return _answer("clear", "starts-as-given", evidence)


def _buffers_apart(one: Held) -> list[int]:
    return differing([str(fields.get("each_buffer", "")).split() for fields in one.of_rank]) or []
