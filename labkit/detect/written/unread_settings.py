"""Is each setting of the training read?

A script parses --weight-decay, a class of settings has warmup_steps or a function takes lr, and nothing reads it: the run
is logged with a value that it never had. Read in the source; no run shows it. An argument that is left over, whose value is
used elsewhere, may be meant.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record
from ..verdict import Verdict, answering
from .measures import READ, read_in_the_source

NAME = "unread-settings"
QUESTION = "Is each setting of the training read?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Look at what was read in the source, on rank 0."""
    events, evidence = read_in_the_source(record.run)
    if not evidence:
        return _answer("not_applicable", "source-not-read")
    seen = [event.fields for event in events if event.name == "unread"]
    if not seen:
        return _answer("clear", "settings-are-read", evidence)
    first = next((fields for fields in seen if fields["alone"]), next(iter(seen)))
    where = str(first["where"]) or None
    names = sorted({str(fields["setting"]) for fields in seen})
    evidence["unread"] = Quantity(", ".join(names), "", READ)
    if first["kind"] == "option":
        return _answer("found", "option-never-read", evidence, where=where, name=first["setting"])
    status = "found" if first["alone"] else "inconclusive"
    if first["kind"] == "field":
        return _answer(status, "field-never-read", evidence, where=where, name=first["setting"], of=first["function"])
    return _answer(status, "argument-never-read", evidence, where=where, name=first["setting"], function=first["function"])
