"""Does an evaluation leave the weights that train as they were?

Averaged weights are evaluated by copying them into the model, and the trained ones are put back afterwards. Where the copy
to put back is a reference (`state_dict()` copies nothing), or nobody puts it back, training goes on from the average after
each evaluation, and is set back a little each time.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record
from ..verdict import Verdict, answering

NAME = "weights-put-back"
QUESTION = "Does an evaluation leave the trained weights as they were?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

MOST = 0.9
"""Share of the values that an average moves, unlike what prunes or bounds some."""

OLDER = 0.8
"""So much nearer to weights of before than to the last ones: an average lies back on the way."""


def detect(record: Record) -> Verdict:
    """Compare weights before, in and after each evaluation, and look at what modules are given back."""
    events = record.run.ranks[0].events
    for event in events:
        fields = event.fields
        if event.name == "module_loaded" and fields["changed"] and fields["own"] == fields["given"]:
            evidence = {
                "given": Quantity(int(fields["given"]), "keys"),
                "own": Quantity(int(fields["own"]), "of the module"),
            }
            return _answer("found", "state-kept-by-reference", evidence, where=str(fields["where"]) or None)
    seen = [event.fields for event in events if event.name == "evaluation"]
    if not seen:
        return _answer("not_applicable", "no-evaluation-between-updates")
    left = [one for one in seen if one["stayed"] and float(one["changed"]) >= MOST and not one["exchanged"]]
    averaged = [one for one in left if one["average"]]
    evidence = {
        "evaluations": Quantity(len(seen), "with an update after them"),
        "changed": Quantity(sum(float(one["changed"]) > 0 for one in seen), "of other weights than the last update left"),
        "stayed": Quantity(len(left), "whose weights stayed"),
    }
    if averaged:
        return _answer("found", "average-left-in-the-model", evidence, where=str(averaged[0]["where"]) or None)
    if any(float(one["older"]) < OLDER and not one["returned"] for one in left):
        return _answer("inconclusive", "weights-changed-for-an-evaluation", evidence)
    return _answer("clear", "evaluations-leave-the-weights", evidence)
