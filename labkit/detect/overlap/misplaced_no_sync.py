"""Is no_sync around the right passes?

DDP decides in the forward pass whether the backward pass will reduce: no_sync around the backward pass alone changes
nothing. Around every micro-batch it means that nothing is ever reduced, and the ranks train apart without a word.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..explanations import nothing_to_reduce
from ..verdict import Verdict, answering
from .measures import Reductions, reductions, weights_equal_on_ranks

NAME = "misplaced-no-sync"
QUESTION = "Is no_sync around forward and backward of all micro-batches but the last?"
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Judge the run under study."""
    run = record.run
    done = reductions(run)
    if done is None or run.world_size == 1:
        return nothing_to_reduce(run, _answer)
    equal, where = weights_equal_on_ranks(run), str(run.fact("gradients_where", "")) or None
    evidence = _evidence(done, equal)
    if done.never and equal is None and _exchanges_by_itself(run):
        return _answer("inconclusive", "never-reduced-and-ranks-talk", evidence, steps=done.steps)
    if done.never:
        return _never_reduced(done, equal, evidence, where)
    if done.kept_in_vain:
        passes = done.kept_in_vain
        return _answer("found", "no-sync-leaves-the-forward-pass-out", evidence, where=where, passes=passes)
    if done.left_out and equal is None:
        return _answer("inconclusive", "last-pass-not-reduced-and-weights-not-known", evidence, steps=done.left_out)
    if done.left_out and not equal:
        return _answer("found", "last-pass-not-reduced", evidence, where=where, steps=done.left_out)
    if done.in_no_sync_forward == 0:
        return _answer("not_applicable", "no-pass-in-no-sync", evidence)
    return _answer("clear", "one-reduction-a-step", evidence, passes=done.passes, reduced=done.reduced)


def _never_reduced(done: Reductions, equal: bool | None, evidence: dict[str, Quantity], where: str | None) -> Verdict:
    if equal:
        return _answer("clear", "never-reduced-yet-weights-are-equal", evidence, steps=done.steps)
    if equal is False:
        return _answer("found", "never-reduced-and-weights-differ", evidence, where=where, steps=done.steps)
    if done.in_no_sync_forward < 1:
        return _answer("inconclusive", "never-reduced-and-weights-not-known", evidence, steps=done.steps)
    return _answer("found", "every-pass-in-no-sync", evidence, where=where, steps=done.steps)


def _exchanges_by_itself(run: Run) -> bool:
    """Whether the script or its library calls collectives while it trains: it may average weights now and then."""
    return any(step.counts.get("script_collectives") for log in run.ranks for step in log.steps)


def _evidence(done: Reductions, equal: bool | None) -> dict[str, Quantity]:
    found = {
        "micro_batches": Quantity(done.passes, "backward passes a step"),
        "reductions": Quantity(done.reduced, "a step"),
        "forward_in_no_sync": Quantity(done.in_no_sync_forward, "of the passes"),
        "backward_in_no_sync": Quantity(done.in_no_sync_backward, "of the passes"),
    }
    return found if equal is None else found | {"weights_equal_on_ranks": Quantity(equal)}
