"""Does the training come to each of its calls?

A call that stands behind a return, a break or a continue of its own block is never made. No error says so, and a scheduler
that is never stepped looks like one with a constant rate. Read in the source.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record
from ..verdict import Verdict, answering
from .measures import READ, read_in_the_source

NAME = "unreached-calls"
QUESTION = "Does the training come to each of its calls?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Look at what was read in the source, on rank 0."""
    events, evidence = read_in_the_source(record.run)
    if not evidence:
        return _answer("not_applicable", "source-not-read")
    for event in events:
        if event.name == "unreached":
            call, after = str(event.fields["call"]), str(event.fields["after"])
            evidence["ended_before_at"] = Quantity(after, "", READ)
            known = {"call": call, "after": after, "ends_with": event.fields["ends_with"]}
            return _answer("found", "call-never-reached", evidence, where=str(event.fields["where"]) or None, **known)
    return _answer("clear", "calls-are-reached", evidence)
