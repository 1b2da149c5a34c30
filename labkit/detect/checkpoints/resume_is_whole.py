"""Does a resumed run use all that its checkpoint holds?

A resume that restores the weights alone runs, and its loss falls. What it lost shows in the first updates: moments that are
zero again, a schedule at its start, a scale that is searched anew; or weights that were loaded and then overwritten.

A start from weights (fine-tuning, a second stage) is no resume and loses nothing. So a state that was not restored is found
only where the script surely goes on: it restores a part, counts on from the file, or writes the file again, with the same
optimizer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..verdict import Verdict, answering
from .resumed import Resumed, resumes

NAME = "resume-is-whole"
QUESTION = "Does a resumed run use all that its checkpoint holds?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

MOST, HALF = 0.9, 0.5
"""Shares of the loaded weights from which on they count as overwritten for sure, and perhaps."""

JUMP = 0.05
"""Relative change of the learning rate over a resume that one step of a schedule hardly makes."""


_of_load, _of_optimizer = operator.attrgetter("load_where"), operator.attrgetter("optimizer_where")


@dataclass(frozen=True)
class _Test:
    """One way in which a resume is not whole."""

    reason: str
    holds: Callable[[Resumed], bool]
    status: Any = "found"
    place: Callable[[Resumed], str | None] = operator.attrgetter("where")


def _lost_moments(one: Resumed) -> bool:
    fields = one.fields
    return bool(fields["stateful"]) and not fields["moments"] and one.whole_model and one.from_file


def _schedule_restarts(one: Resumed) -> bool:
    fields = one.fields
    then, now = float(fields["file_rate"]), float(fields["rate"])
    fresh = fields["has_schedule"] and not fields["schedule_given"] and int(fields["schedule_at"]) <= 1
    jumps = then > 0 and abs(now / then - 1) > JUMP
    return bool(fresh and jumps and fields["optimizer_given"] and one.from_file and int(fields["file_steps"]) > 1)


def _schedule_not_given(one: Resumed) -> bool:
    fields = one.fields
    fresh = fields["has_schedule"] and not fields["schedule_given"] and int(fields["schedule_at"]) <= 1
    return bool(fresh and fields["optimizer_given"] and one.from_file and int(fields["file_schedule_at"]) > 1)


def _weights_not_given(one: Resumed) -> bool:
    fields = one.fields
    given = fields["optimizer_given"] and one.from_file and not float(fields["weights_loaded"])
    return bool(given and int(fields["weights_expected"]) >= 2 and not int(fields["weights_arrived"]))


def _scaler_not_given(one: Resumed) -> bool:
    fields = one.fields
    given = fields["has_scaler"] and not fields["scaler_given"] and one.goes_on
    return bool(given and float(fields["file_scale"]) > 0 and fields["file_scale"] != fields["scale"])


TESTS = (
    _Test("loaded-weights-put-back", lambda one: float(one.fields["put_back"]) >= HALF, place=_of_load),
    _Test("loaded-weights-overwritten", lambda one: float(one.fields["weights_overwritten"]) >= MOST, place=_of_load),
    _Test("weights-not-given", _weights_not_given),
    _Test(
        "weights-missing-from-file",
        lambda one: bool(one.fields["optimizer_given"] and one.from_file) and float(one.fields["weights_missing"]) > 0,
        place=_of_load,
    ),
    _Test(
        "moments-not-asked-for",
        lambda one: _lost_moments(one) and bool(one.fields["optimizer_given"] and one.fields.get("unread_moments")),
    ),
    _Test(
        "optimizer-state-dropped",
        lambda one: _lost_moments(one) and bool(one.fields["optimizer_given"] and one.fields["file_moments"]),
        place=_of_optimizer,
    ),
    _Test(
        "optimizer-not-given",
        lambda one: _lost_moments(one) and bool(one.fields["file_moments"]) and one.goes_on,
    ),
    _Test(
        "optimizer-not-in-file",
        lambda one: _lost_moments(one) and not one.fields["file_optimizer"] and one.goes_on,
    ),
    _Test(
        "optimizer-state-cast",
        lambda one: bool(one.fields["cast"] and one.fields["kept_apart"] and one.fields["cast_down"]),
        place=_of_optimizer,
    ),
    _Test(
        "optimizer-state-grown",
        lambda one: bool(one.fields["cast"] and one.fields["kept_apart"]),
        place=_of_optimizer,
    ),
    _Test("schedule-starts-again", _schedule_restarts),
    _Test("schedule-not-given", _schedule_not_given),
    _Test("scaler-not-given", _scaler_not_given),
    _Test("optimizer-state-follows", lambda one: bool(one.fields["cast"]), "inconclusive"),
    _Test("some-weights-overwritten", lambda one: float(one.fields["weights_overwritten"]) >= HALF, "inconclusive"),
    _Test(
        "optimizer-perhaps-not-given", lambda one: _lost_moments(one) and bool(one.fields["file_moments"]), "inconclusive"
    ),
)
"""In the order in which they are told; what makes others follow comes first."""


def detect(record: Record) -> Verdict:
    """Look at each load, and at the first update after it."""
    run = record.run
    of_modules = _of_modules(run)
    if of_modules is not None:
        return of_modules
    seen = resumes(run)
    for test in TESTS:
        for one in seen:
            if test.holds(one):
                where = test.place(one) if test.status == "found" else None
                return _answer(test.status, test.reason, _evidence(one), where=where, **_numbers(one))
    ranks = _of_ranks(run)
    if ranks is not None:
        return ranks
    if not seen:
        return _answer("not_applicable", "nothing-is-resumed")
    reason = "resume-holds-all" if any(one.goes_on for one in seen) else "starts-from-weights"
    return _answer("clear", reason, _evidence(seen[-1]))


def _evidence(one: Resumed) -> dict[str, Quantity]:
    fields = one.fields
    said = {"weights_loaded": Quantity(100 * float(fields["weights_loaded"]), "% of the optimizer's")}
    if int(fields["file_steps"]) >= 0:
        said["steps_in_file"] = Quantity(int(fields["file_steps"]), "that the optimizer had counted")
    if int(fields["steps"]) >= 0:
        said["steps_at_resume"] = Quantity(int(fields["steps"]))
    if float(fields["file_rate"]) >= 0:
        said["rate_in_file"] = Quantity(float(fields["file_rate"]), "learning rate")
    said["rate_at_resume"] = Quantity(float(fields["rate"]), "learning rate")
    return said


def _numbers(one: Resumed) -> dict[str, Any]:
    fields = one.fields
    return {
        "share": max(float(fields["put_back"]), float(fields["weights_overwritten"])),
        "missing": float(fields["weights_missing"]),
        "cast": str(fields["cast"]),
        "then": float(fields["file_rate"]),
        "now": float(fields["rate"]),
        "scale_then": float(fields["file_scale"]),
        "scale_now": float(fields["scale"]),
    }


def _of_modules(run: Run) -> Verdict | None:
    """A load of which no key fitted: the last one of its module before the next update."""
    events = [event for event in run.ranks[0].events if event.name == "module_loaded"]
    for at, event in enumerate(events):
        fields = event.fields
        later = [one.fields for one in events[at + 1 :] if one.fields["module"] == fields["module"]]
        if any(one["updates"] == fields["updates"] for one in later):
            continue  # tried again, with other names
        given, unexpected = int(fields["given"]), int(fields["unexpected"])
        if given and unexpected == given and int(fields["missing"]):
            evidence = {
                "given": Quantity(given, "keys"),
                "fitting": Quantity(0, "of them"),
                "renamed": Quantity(int(fields["renamed"]), "that would fit but for words in front"),
            }
            where = str(fields["where"]) or None
            reason = "nothing-was-read" if fields.get("in_place") else "nothing-was-loaded"
            return _answer("found", reason, evidence, where=where, example=str(fields["example"]))
    return None


def _of_ranks(run: Run) -> Verdict | None:
    """What ranks restored, compared; and what came to another rank's device."""
    restored = [[e.fields for e in log.events if e.name == "generator_restored"] for log in run.ranks]
    if run.world_size > 1 and all(restored):
        digests, seeds = {str(of[0]["digest"]) for of in restored}, {str(of[0]["seed"]) for of in restored}
        if len(digests) == 1 and len(seeds) == run.world_size:
            evidence = {"seeds": Quantity(len(seeds), "different ones before"), "states": Quantity(1, "of all ranks after")}
            where = str(restored[0][0]["where"]) or None
            return _answer("found", "one-generator-for-all", evidence, where=where)
    for log in run.ranks:
        for event in log.events:
            if event.name == "torch_load" and event.fields["elsewhere"]:
                where = str(event.fields["where"]) or None
                return _answer("found", "loaded-onto-another-gpu", where=where, rank=log.head.rank)
    return None
