"""Does each micro-batch reduce its gradients, where one reduction a step would do?

By counts: backward passes between two steps of the optimizer, and how many of them reduced.
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ...words import plural
from ..explanations import nothing_to_reduce
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
    evidence = {
        "micro_batches": Quantity(done.passes, "backward passes a step"),
        "reductions": Quantity(done.reduced, "a step"),
        "passes_in_no_sync": Quantity(done.in_no_sync_forward, "of the forward passes"),
        "steps": Quantity(done.steps, "watched"),
    }
    if done.passes < 2:
        return _answer("not_applicable", evidence, cause="a step has one backward pass: nothing is accumulated")
    if done.reduced == 0:
        return _answer("clear", evidence, cause="no micro-batch reduces its gradients: see misplaced-no-sync")
    if done.reduced <= 1:
        return _answer("clear", evidence, cause=f"{done.passes:g} micro-batches, {plural(done.reduced, 'reduction')} a step")
    if done.kept_in_vain:
        return _answer("clear", evidence, cause="no_sync is there, but around the wrong part: misplaced-no-sync says where")
    size = ddp_fact(run.ranks[0], "ddp_gradient_bytes")
    each = f" of {size:,} bytes each" if isinstance(size, int) else ""
    return _answer(
        "found",
        evidence,
        cause=f"{done.reduced:g} of {done.passes:g} micro-batches reduce their gradients{each}, and one reduction would do",
        fix="put forward and backward of all micro-batches but the last into `with ddp.no_sync():`",
        where=str(run.fact("gradients_where", "")) or None,
        waste=_waste(run, done.reduced),
    )


def _waste(run: Run, times: float) -> float | None:
    """Of the step: the exposed communication of all reductions but one; None where none was timed."""
    seen = exposure(run)
    return None if seen is None else float(np.median(seen.exposed_s / seen.step_s)) * (1 - 1 / times)
