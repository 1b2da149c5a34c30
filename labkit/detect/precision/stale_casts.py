"""Does each forward pass see the weights of the last update?

Inside one autocast context the 16-bit casts of weights are kept and used again; only leaving the context drops them. One
context around the whole loop therefore computes with the first weights for ever, while the optimizer moves the real ones.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..verdict import Verdict, answering
from .measures import Repeated, repeated_batches, steps_of

NAME = "stale-casts"
QUESTION = "Does each forward pass see the weights of the last update?"
_answer = answering(NAME, QUESTION)

ENOUGH = 3
"""Times that a loss stands still on one batch before it is no accident."""


def detect(record: Record) -> Verdict:
    """Judge by forward passes with and without kept casts, where recorded; else by losses on a batch that came again."""
    run = record.run
    steps = steps_of(run)
    checks = sum(step.counts.get("forward_checks", 0) for step in steps)
    stale = sum(step.counts.get("forward_stale", 0) for step in steps)
    open_then = sum(step.counts.get("autocast_open_at_update", 0) for step in steps)
    again = repeated_batches(run)
    if not checks and not again.pairs:
        return _answer("not_applicable", "no-pass-checked-after-an-update")
    evidence = {}
    if checks:
        evidence["stale_forward_passes"] = Quantity(stale, f"of {checks} checked")
        evidence["autocast_open_at_update"] = Quantity(open_then, f"of {checks} checked")
    if again.pairs:
        evidence["loss_stood_still"] = Quantity(again.equal, f"of {again.pairs} times that a batch came again")
    stands = again.pairs >= ENOUGH and again.equal == again.pairs
    if stale or (stands and not checks):
        return _found(run, stale > 0, again if stands else None, evidence)
    if checks or (again.pairs >= ENOUGH and not again.equal):
        return _answer("clear", "passes-see-the-last-update", evidence)
    return _answer(
        "inconclusive",
        "too-few-batches-that-came-again",
        evidence,
        equal=again.equal,
        pairs=again.pairs,
        enough=ENOUGH + 1,
    )


def _found(run: Run, stale: bool, stands: Repeated | None, evidence: dict[str, Quantity]) -> Verdict:
    """By what was seen: a stale forward pass, a loss that stands still on one batch, or both."""
    where = str(run.fact("loop_where", "")) or None
    if stale and stands is not None:
        times = stands.equal + 1
        return _answer("found", "casts-of-older-weights-and-loss-stands-still", evidence, where=where, times=times)
    if stale:
        return _answer("found", "casts-of-older-weights", evidence, where=where)
    if stands is not None and stands.seen_to_move:
        return _answer("found", "loss-stands-still-while-weights-move", evidence, where=where)
    return _answer("found", "loss-stands-still", evidence, where=where)
