"""Does each update use the gradients of its own batches alone?

Gradients add up until somebody clears them. Where nobody does, each update uses all gradients since the start. Where only
whole windows of K micro-batches end in an update, what is left over at the end of an epoch joins the first window of the
next, or is cleared unused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ...record.quantity import Quantity
from ...record.schema import Record, Step
from ..runs import looked_at
from ..verdict import Verdict, answering

NAME = "old-gradients"
QUESTION = "Does each update use the gradients of its own batches alone?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

ENOUGH = 4
"""Updates before anything is said."""

WORTH = 0.02
"""Share of the backward passes thrown away that is worth a word."""

WINDOW = 1.5
"""Backward passes an update from which on several make a window. With one a update, what is not used was skipped on purpose:
a loss that is not finite, a spike."""

SEVERAL, NEARLY_ALL = 2.5, 0.9
"""Backward passes an update, and share of them that are cleared but for the last, from which on only that one counts. Two
passes may be meant: one that looks where the loss grows, one there."""


def detect(record: Record) -> Verdict:
    """Judge what each backward pass found in the gradients, on rank 0."""
    run = record.run
    steps = [step for step in run.ranks[0].steps if step.counts.get("backward_calls")]
    updates = sum(step.counts.get("updates", 0) for step in steps)
    if run.fact("watched_by") != "doctor" or not steps:
        return _answer("not_applicable", "gradients-not-watched")
    if updates < ENOUGH:
        return _answer("inconclusive", "too-few-updates-for-gradients", updates=updates)
    passes = sum(step.counts["backward_calls"] for step in steps)
    closely = looked_at(steps)
    onto = sum(step.counts.get("backward_onto_used", 0) for step in closely)
    looks = sum(step.counts.get("updates", 0) for step in closely)
    across = _too_large(run.ranks[0].steps)
    unused = sum(step.counts.get("backward_unused", 0) for step in steps)
    where = str(run.fact("loop_where", "")) or None
    evidence = {
        "updates": Quantity(updates),
        "backward_passes": Quantity(passes),
        "onto_used_gradients": Quantity(onto, "of them"),
        "unused": Quantity(unused, "of them"),
    }
    if onto >= ENOUGH - 1 and onto >= 0.9 * (looks - 1):
        return _answer("found", "gradients-never-cleared", evidence, where=where, updates=updates)
    if across:
        return _answer("found", "window-over-two-epochs", evidence, where=where, times=across)
    if unused > WORTH * passes and passes >= WINDOW * updates:
        share = unused / passes
        return _answer("found", "last-window-dropped", evidence, where=where, waste=share, unused=unused, passes=passes)
    cleared = sum(step.counts.get("backward_cleared", 0) for step in closely)
    watched = sum(step.counts["backward_calls"] for step in closely)
    if looks >= ENOUGH and watched >= SEVERAL * looks and cleared >= NEARLY_ALL * (watched - looks):
        evidence = evidence | {"cleared": Quantity(cleared, f"of {watched} that were watched, before any update")}
        return _answer("inconclusive", "micro-batches-cleared", evidence, passes=round(watched / looks))
    return _answer("clear", "gradients-of-their-own-batches", evidence)


def _too_large(steps: Iterable[Step]) -> int:
    """Updates whose backward passes began in the epoch before, and are more than an update usually has.

    A script that counts micro-batches through the epochs has windows over two epochs as well: they are as large as others,
    or, where a scaler skipped a step, so many times as large.
    """
    across, within, size, begun_before = [], [], 0, False
    for step in steps:
        size += step.counts.get("backward_calls", 0)
        begun_before = begun_before or bool(step.counts.get("backward_onto_last_epoch"))
        if step.counts.get("updates"):
            (across if begun_before else within).append(size)
            size, begun_before = 0, False
    if not within:
        return 0
    usual = Counter(within).most_common(1)[0][0]
    return sum(size > usual and size % usual != 0 for size in across) if usual else 0
