"""Do averaged weights follow those that train?

An average that looks its tensors up by name finds none where a wrapper or a compiler put words in front of the names, and
stays as it was made. One whose count of updates is not restored takes the raw weights over at the first update after a
resume.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...record.quantity import Quantity
from ...record.schema import Record
from ..verdict import Verdict, answering

NAME = "averaged-weights"
QUESTION = "Do averaged weights follow those that train?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

LOOKS, SPAN = 4, 16
"""Looks, and updates between the first and the last, before an average that never moves is one that stands still."""

BY_NAME = 8
"""The same where the script goes through the wrapped model by names in nearly each of these updates."""

LONGER = 24
"""The same for one that nobody evaluated: it may begin late."""

PULL, LAG = 0.85, 3.0
"""Part of the way to the weights in one update, and updates that an average was behind, that no decay explains together."""

Fields = Mapping[str, Any]


def detect(record: Record) -> Verdict:
    """Look at each average in turn; the first with a fault is told."""
    averages: dict[int, list[Fields]] = {}
    for event in record.run.ranks[0].events:
        if event.name == "average":
            averages.setdefault(int(event.fields["number"]), []).append(event.fields)
    if not averages:
        return _answer("not_applicable", "no-average-seen")
    run = record.run
    loads = [str(event.fields["where"]) for event in run.ranks[0].events if event.name == "torch_load"]
    places = {"load": next(reversed(loads), "") or None, "loop": str(run.fact("loop_where", "")) or None}
    verdicts = [_of(looks, places) for looks in averages.values()]
    for status in ("found", "inconclusive"):
        for verdict in verdicts:
            if verdict.status == status:
                return verdict
    return verdicts[0]


def _of(looks: list[Fields], places: Mapping[str, str | None]) -> Verdict:
    first, last = looks[0], looks[-1]
    span = int(last["update"]) - int(first["update"])
    moved = sum(bool(one["moved"]) for one in looks)
    evidence = {
        "looks": Quantity(len(looks), "after updates"),
        "moved": Quantity(moved, "times since the look before"),
        "weights_moved": Quantity(sum(bool(one["weights_moved"]) for one in looks), "times since the look before"),
        "fitting": Quantity(int(last["fitting"]), "tensors of the average"),
    }
    name = str(last["held_as"])
    again = _starts_again(looks)
    if again is not None:
        more = {
            "pull": Quantity(100 * float(again["pull"]), "% of the way"),
            "lag": Quantity(float(again["lag"]), "updates"),
        }
        pull = float(again["pull"])
        return _answer("found", "average-starts-again", evidence | more, where=places["load"], name=name, pull=pull)
    still = not moved and len(looks) >= LOOKS and all(one["weights_moved"] for one in looks[1:])
    named = int(last.get("named", 0)) - int(first.get("named", 0))
    if still and not int(last["called"]) and span >= BY_NAME and named >= 0.9 * span:
        return _answer("found", "average-misses-names", evidence, where=places["loop"], name=name, updates=span)
    if not still or span < SPAN:
        return _answer("clear", "averages-follow", evidence)
    if not int(last["called"]) and span >= LONGER:
        return _answer("found", "average-misses-names", evidence, where=places["loop"], name=name, updates=span)
    if last["evaluated"]:
        return _answer("found", "average-never-updated", evidence, where=places["loop"], name=name, updates=span)
    return _answer("inconclusive", "average-stands-still", evidence, name=name, updates=span)


def _starts_again(looks: list[Fields]) -> Fields | None:
    """The look after the first update of an average that came from a file, where that took nearly all of the way."""
    loaded = False
    for one in looks:
        if int(one["since_load"]) == 1:
            loaded = bool(one["from_file"])
        elif loaded and int(one["since_load"]) > 1 and float(one["pull"]) != 0:
            loaded = False  # the first that moved it decides
            if float(one["pull"]) >= PULL and float(one["lag"]) >= LAG:
                return one
    return None
