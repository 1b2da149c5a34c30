"""Is no_sync around the right passes?

DDP decides in the forward pass whether the backward pass will reduce: no_sync around the backward pass alone changes
nothing. Around every micro-batch it means that nothing is ever reduced, and the ranks train apart without a word.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record
from ...words import plural
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
    if done.never:
        return _never_reduced(done, equal, evidence, where)
    if done.kept_in_vain:
        return _answer(
            "found",
            evidence,
            cause=f"{done.kept_in_vain} backward passes ran in no_sync and reduced all the same: DDP had decided in the "
            "forward pass, which ran outside",
            fix="put the forward pass into `with ddp.no_sync():` too",
            where=where,
        )
    if done.left_out and not equal:
        return _left_out(done, equal, evidence, where)
    if done.in_no_sync_forward == 0:
        return _answer("not_applicable", evidence, cause="no pass ran in no_sync")
    return _answer(
        "clear",
        evidence,
        cause=f"{plural(done.passes, 'micro-batch', 'micro-batches')}, {plural(done.reduced, 'reduction')} a step",
    )


def _never_reduced(done: Reductions, equal: bool | None, evidence: dict[str, Quantity], where: str | None) -> Verdict:
    apart = f"in {plural(done.steps, 'step')} DDP reduced nothing"
    if equal:
        return _answer(
            "clear", evidence, cause=f"{apart}, yet all ranks end with the same weights: something else reduces them"
        )
    if equal is None and done.in_no_sync_forward < 1:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"{apart}, though not every pass ran in no_sync, and no hash says whether the ranks' weights are equal",
            fix="watch the whole run, and record the weights on every rank: probe.digest('weights', model.parameters())",
        )
    told = "and the ranks end with different weights" if equal is False else "so each rank trains a model of its own"
    return _answer(
        "found",
        evidence,
        cause=f"{apart}, {told}: every micro-batch ran in no_sync",
        fix="leave the last micro-batch of each step outside of `with ddp.no_sync():`, forward and backward. Where weights "
        "are averaged now and then instead (local SGD), record their hash after the last time: "
        "probe.digest('weights', model.parameters())",
        where=where,
    )


def _left_out(done: Reductions, equal: bool | None, evidence: dict[str, Quantity], where: str | None) -> Verdict:
    last = f"in {plural(done.left_out, 'step')} of the optimizer the last backward pass did not reduce: it ran in no_sync"
    if equal is None:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"{last}, and no hash says whether the ranks' weights are equal",
            fix="record the weights on every rank: probe.digest('weights', model.parameters())",
        )
    return _answer(
        "found",
        evidence,
        cause=f"{last}, its gradients stay on their rank, and the ranks end with different weights",
        fix="leave the last micro-batch of each step outside of `with ddp.no_sync():`, and put the others in, forward and "
        "backward; the last batches of an epoch too",
        where=where,
    )


def _evidence(done: Reductions, equal: bool | None) -> dict[str, Quantity]:
    found = {
        "micro_batches": Quantity(done.passes, "backward passes a step"),
        "reductions": Quantity(done.reduced, "a step"),
        "forward_in_no_sync": Quantity(done.in_no_sync_forward, "of the passes"),
        "backward_in_no_sync": Quantity(done.in_no_sync_backward, "of the passes"),
    }
    return found if equal is None else found | {"weights_equal_on_ranks": Quantity(equal)}
