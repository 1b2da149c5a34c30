"""Do updates change the weights?

A training may run for hours and change nothing: the loss was cut off from the model, the learning rate is 0, the gradients
are 0, or each update is too small for the number format of the weight and rounds away. Judged by the weights themselves,
before and after some of the steps of each optimizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..verdict import Verdict, answering

NAME = "empty-updates"
QUESTION = "Do updates change the weights?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

ENOUGH = 3
"""Steps of an optimizer that are looked at before anything is said."""

MANY, SOME = 0.5, 0.2
"""Share of the weights whose updates round away: above the first it is found, below the second nothing is said."""

NEARLY_ALL = 0.9
"""The same for weights of 32 bits, whose updates round away only where they are millions of times smaller."""

BACKWARDS = 32
"""Backward passes without a step of an optimizer before it is known to have been left out."""

TOLD = (
    ("learning-rate-is-zero", lambda looks: all(look["lr"] == 0 for look in looks)),
    ("no-gradient-reaches-the-optimizer", lambda looks: not any(look["with_gradient"] for look in looks)),
    ("gradients-all-zero", lambda looks: all(look["gradients_zero"] for look in looks)),
)
"""Why an optimizer changes no weight, the first that holds."""


def detect(record: Record) -> Verdict:
    """Judge each optimizer by what was seen of its steps, on rank 0."""
    run = record.run
    looks = [event.fields for event in run.ranks[0].events if event.name == "update_effect"]
    if not looks:
        return _never_stepped(run)
    own: dict[Any, list[Any]] = {}
    for look in looks:
        own.setdefault(look["optimizer"], []).append(look)
    verdicts = [_of_optimizer(run, of_one) for of_one in own.values()]
    for status in ("found", "inconclusive"):
        for verdict in verdicts:
            if verdict.status == status and verdict.reason != "too-few-updates-looked-at":
                return verdict
    return next((verdict for verdict in verdicts if verdict.status == "clear"), verdicts[0])


def _of_optimizer(run: Run, looks: Sequence[Any]) -> Verdict:
    last = looks[-1]
    where, updates = str(last["where"]) or None, int(last["update"])
    evidence = {"updates": Quantity(updates), "looked_at": Quantity(len(looks), "of them")}
    if len(looks) < ENOUGH:
        return _answer("inconclusive", "too-few-updates-looked-at", evidence, updates=updates)
    if not any(look["moved"] for look in looks):
        for reason, holds in TOLD:
            if holds(looks):
                if reason == "no-gradient-reaches-the-optimizer" and _holds_others(run):
                    return _answer("inconclusive", "optimizer-may-hold-others", evidence)
                return _answer("found", reason, evidence, where=where, waste=1.0, updates=updates)
    undone = sum(bool(look["undone"]) for look in looks)
    if undone >= ENOUGH and undone >= sum(bool(look["moved"]) for look in looks[1:4]):
        return _answer("found", "updates-put-back", evidence, where=where, waste=1.0, updates=undone)
    return _of_rounding(looks, where, evidence)


def _of_rounding(looks: Sequence[Any], where: str | None, evidence: dict[str, Quantity]) -> Verdict:
    """By the share of the weights that steps leave as they were although their gradient is not 0; of the later half."""
    working = [look for look in looks if look["lr"] != 0 and look["elements"]]
    later = working[len(working) // 2 :]
    if len(later) < 2:
        return _answer("clear", "updates-change-weights", evidence)
    elements = sum(look["elements"] for look in later)
    unchanged = sum(look["unchanged"] for look in later) / elements
    share = min(unchanged, later[-1]["unmoved"] / later[-1]["elements"])
    evidence |= {
        "unchanged_by_an_update": Quantity(unchanged, "of the weights with a gradient"),
        "unmoved_since_the_first": Quantity(later[-1]["unmoved"] / later[-1]["elements"], "of them"),
        "learning_rate": Quantity(float(later[-1]["lr"])),
    }
    half = all(look["half"] for look in later)
    known = {"share": share, "rate": float(later[-1]["lr"])}
    if share >= (MANY if half else NEARLY_ALL):
        reason = "updates-round-away-in-16-bits" if half else "updates-too-small-to-count"
        return _answer("found", reason, evidence, where=where, waste=share, **known)
    if half and share >= SOME:
        return _answer("inconclusive", "some-updates-round-away", evidence, **known)
    return _answer("clear", "updates-change-weights", evidence)


def _holds_others(run: Run) -> bool:
    """Whether gradients are made, of parameters that no optimizer holds: then it is another question's."""
    looks = [event.fields for event in run.ranks[0].events if event.name == "parameters"]
    return any(look["unheld"] and look["foreign"] for look in looks)


def _never_stepped(run: Run) -> Verdict:
    if run.fact("watched_by") != "doctor":
        return _answer("not_applicable", "updates-not-looked-at")
    seen = [event.fields for event in run.ranks[0].events if event.name == "not_updated"]
    asked = any(step.counts.get("scaler_steps") for step in run.ranks[0].steps)
    if not seen or asked or any(look["weights_move"] for look in seen):
        return _answer("not_applicable", "no-optimizer-stepped")
    passes = sum(step.counts.get("backward_calls", 0) for step in run.ranks[0].steps)
    evidence = {"backward_passes": Quantity(passes), "updates": Quantity(0)}
    if passes < BACKWARDS or not run.ranks[0].finished:
        return _answer("inconclusive", "optimizer-may-step-later", evidence, passes=passes)
    where = str(run.fact("loop_where", "")) or None
    return _answer("found", "optimizer-never-stepped", evidence, where=where, waste=1.0, passes=passes)
