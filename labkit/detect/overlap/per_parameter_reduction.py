"""Is each parameter's gradient reduced by a collective of its own?

By counts and sizes: as many collectives as parameters, and small ones. Each costs a latency that bytes do not explain;
how much, depends on the link. A model whose every parameter is large fills a bucket with each, and that is as it should be.
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..verdict import Verdict, answering
from .measures import buckets, ddp_fact, is_sweep, measured_steps

NAME = "per-parameter-reduction"
QUESTION = "Are gradients reduced in many small collectives?"
_answer = answering(NAME, QUESTION)

SMALL_BYTES = 2**20
"""The median collective is small below this: torch's own first bucket."""

MANY = 8
"""Fewer collectives than this are not many."""

NEARLY_ALL = 0.9
"""Collectives / parameters from which on each parameter has its own."""


def detect(record: Record) -> Verdict:
    """Judge the last reduction of the run under study."""
    run = record.run
    if is_sweep(run):
        return _answer("not_applicable", "sweep-tries-one-bucket-a-parameter")
    if run.world_size == 1:
        return _answer("not_applicable", "one-rank-reduces-nothing")
    sizes, params = _collectives(run)
    if not len(sizes):
        return _answer("not_applicable", "no-bucket-seen")
    evidence = {
        "collectives": Quantity(len(sizes), "a reduction"),
        "parameters": Quantity(params, "with a gradient"),
        "median": Quantity(int(np.median(sizes)), "bytes a collective"),
        "smallest": Quantity(int(sizes.min()), "bytes"),
        "gradients": Quantity(int(sizes.sum()), "bytes in all"),
    }
    if len(sizes) < max(MANY, NEARLY_ALL * params) or np.median(sizes) >= SMALL_BYTES:
        return _answer("clear", "few-or-large-collectives", evidence, parameters=params, collectives=len(sizes))
    by_hand = buckets(run) is None
    return _answer(
        "found",
        "one-collective-a-parameter-by-hand" if by_hand else "one-collective-a-parameter",
        evidence,
        where=str(run.fact("gradients_where" if by_hand else "wrap_where", "")) or None,
        collectives=len(sizes),
        parameters=params,
        median_bytes=int(np.median(sizes)),
    )


def _collectives(run: Run) -> tuple[np.ndarray, int]:
    """(bytes of each collective of a reduction, number of parameters): DDP's, or those that the program made itself."""
    made = buckets(run)
    params = ddp_fact(run.ranks[0], "ddp_params", 0)
    if made is not None:
        return made.num_bytes, params if isinstance(params, int) and params else int(made.params.sum())
    steps = measured_steps(run)
    sizes = np.array(steps[-1][0].series.get("by_hand_bytes", []) if steps else [], dtype=np.int64)
    return sizes, params if isinstance(params, int) and params else len(sizes)
