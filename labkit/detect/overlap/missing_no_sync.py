"""Does each micro-batch reduce its gradients, where one reduction a step would do?

By counts: backward passes between two steps of the optimizer, and how many of them reduced.
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..explanations import nothing_to_reduce
from ..runs import looked_at
from ..verdict import Verdict, answering
from .measures import ddp_fact, exposure, reductions

NAME = "missing-no-sync"
QUESTION = "Are gradients reduced more often than once a step?"
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Judge the run under study."""
    run = record.run
    done = reductions(run)
    if done is None or run.world_size == 1:
        return nothing_to_reduce(run, _answer)
    modules = run.fact("ddp_modules", 1)
    if isinstance(modules, int) and modules > 1:
        return _answer("not_applicable", "several-ddp-modules", modules=modules)
    evidence = {
        "micro_batches": Quantity(done.passes, "backward passes a step"),
        "reductions": Quantity(done.reduced, "a step"),
        "passes_in_no_sync": Quantity(done.in_no_sync_forward, "of the forward passes"),
        "steps": Quantity(done.steps, "watched"),
    }
    if done.passes < 2:
        return _answer("not_applicable", "nothing-is-accumulated", evidence)
    steps = looked_at(run.ranks[0].steps)
    cleared = sum(step.counts.get("backward_cleared", 0) for step in steps)
    if 2 * cleared > sum(step.counts.get("updates", 0) for step in steps):
        return _answer("not_applicable", "passes-are-cleared-between", evidence)
    if done.reduced == 0:
        return _answer("clear", "no-micro-batch-reduces", evidence)
    if done.reduced <= 1:
        return _answer("clear", "one-reduction-a-step", evidence, passes=done.passes, reduced=done.reduced)
    if done.kept_in_vain:
        return _answer("clear", "no-sync-around-the-wrong-part", evidence)
    size = ddp_fact(run.ranks[0], "ddp_gradient_bytes")
    where, waste = str(run.fact("gradients_where", "")) or None, _waste(run, done.reduced)
    known = {"passes": done.passes, "reduced": done.reduced}
    if not isinstance(size, int):
        return _answer("found", "micro-batches-reduce", evidence, where=where, waste=waste, **known)
    key = "micro-batches-reduce-all-bytes"
    return _answer("found", key, evidence, where=where, waste=waste, gradient_bytes=size, **known)


def _waste(run: Run, times: float) -> float | None:
    """Of the step: the exposed communication of all reductions but one; None where none was timed."""
    seen = exposure(run)
    return None if seen is None else float(np.median(seen.exposed_s / seen.step_s)) * (1 - 1 / times)
