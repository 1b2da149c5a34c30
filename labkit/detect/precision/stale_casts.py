"""Does each forward pass see the weights of the last update?

Inside one autocast context the 16-bit casts of weights are kept and used again; only leaving the context drops them. One
context around the whole loop therefore computes with the first weights for ever, while the optimizer moves the real ones.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record
from ..verdict import Verdict, answering, either
from .measures import repeated_batches, steps_of

NAME = "stale-casts"
QUESTION = "Does each forward pass see the weights of the last update?"
_answer = answering(NAME, QUESTION)

FIX = "open torch.autocast around each forward pass, not around the loop; leaving it drops the kept casts"

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
        return _answer(
            "not_applicable",
            cause="no forward pass was checked after an update, and no batch came twice in a row with weights moved between",
            fix=either(
                lab="train a few steps on one and the same batch (--set fixed_batch=true)",
                script="train a few steps on one and the same batch, read through probe.batches(loader)",
            ),
        )
    evidence = {}
    if checks:
        evidence["stale_forward_passes"] = Quantity(stale, f"of {checks} checked")
        evidence["autocast_open_at_update"] = Quantity(open_then, f"of {checks} checked")
    if again.pairs:
        evidence["loss_stood_still"] = Quantity(again.equal, f"of {again.pairs} times that a batch came again")
    stands = again.pairs >= ENOUGH and again.equal == again.pairs
    if stale or (stands and not checks):
        return _answer(
            "found",
            evidence,
            cause=_cause(bool(stale), again.equal if stands else 0, again.seen_to_move),
            fix=FIX
            if stale or again.seen_to_move
            else f"see whether a weight changes in a step: if it does, {FIX}; if not, "
            "keep the weights in fp32, or raise the learning rate",
            where=str(run.fact("loop_where", "")) or None,
        )
    if checks or (again.pairs >= ENOUGH and not again.equal):
        return _answer("clear", evidence, cause="forward passes compute with the weights of the last update")
    return _answer(
        "inconclusive",
        evidence,
        cause=f"the loss stood still on a batch that came again {again.equal} of {again.pairs} times: too few to tell "
        "an accident of rounding from weights that are not seen",
        fix=f"train {ENOUGH + 1} steps or more on one batch, with a larger learning rate",
    )


def _cause(stale: bool, times_equal: int, seen_to_move: bool) -> str:
    if not stale and not seen_to_move:
        return (
            "on one batch the loss stays the very same number through all updates: the forward pass does not see them, or "
            "they are too small to change a weight"
        )
    if not stale:
        return (
            "on one batch the loss stays the very same number, although the weights move: the forward pass does not see them"
        )
    cause = "after an update, with autocast still open, a forward pass computes with casts of older weights"
    if times_equal:
        cause += f": on one batch the loss is the same number {times_equal + 1} times, although the weights move"
    return cause
