"""Do ranks clip by different norms?

The norm of a gradient is a number of the whole model: after it was averaged or sharded, all ranks must find the same. A
function that sees a shard alone finds the shard's norm; ranks then scale their parts differently, and the update points
elsewhere.
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..runs import train_steps
from ..verdict import Verdict, answering

NAME = "per-rank-norm"
QUESTION = "Does each rank clip by a gradient norm of its own?"
_answer = answering(NAME, QUESTION)

ROUNDING, DIFFERENT = 1e-5, 1e-3
"""Relative differences: below the first is the order of sums, above the second another norm."""


def detect(record: Record) -> Verdict:
    """Judge the scalars `grad_norm` of all ranks, in the run under study."""
    apart = record.run.fact("local_steps", 1)
    if isinstance(apart, int) and apart > 1:
        return _answer("not_applicable", "ranks-train-apart", steps=apart)
    norms = _norms(record.run)
    if norms.shape[0] < 2 or norms.shape[1] == 0:
        return _answer("not_applicable", "no-norms-of-one-step")
    finite = norms[:, np.isfinite(norms).all(axis=0)]
    if finite.shape[1] == 0:
        return _answer("inconclusive", "no-finite-norm-on-every-rank")
    spread = np.ptp(finite, axis=0) / np.maximum(finite.max(axis=0), 1e-300)
    worst = int(spread.argmax())
    evidence = {
        "lowest_norm": Quantity(float(finite[:, worst].min()), "on one rank"),
        "highest_norm": Quantity(float(finite[:, worst].max()), "on another, in the same step"),
        "norm_of_all": Quantity(float(np.sqrt((finite[:, worst] ** 2).sum())), "if these are norms of shards"),
        "steps_that_differ": Quantity(int((spread > DIFFERENT).sum()), f"of {finite.shape[1]}"),
    }
    if np.median(spread) > DIFFERENT:
        where = str(record.run.fact("wrap_where", "")) or None
        return _answer("found", "each-rank-has-a-norm-of-its-own", evidence, where=where)
    if spread.max() <= ROUNDING:
        return _answer("clear", "one-norm-on-all-ranks", evidence)
    return _answer("inconclusive", "norms-differ-in-few-steps", evidence, spread=float(spread.max()))


def _norms(run: Run) -> np.ndarray:
    """[ranks, steps]: of the steps in which every rank recorded one. A rank alone may validate between them."""
    of_ranks = [
        {place: s.scalar("grad_norm") for place, s in enumerate(train_steps(log)) if "grad_norm" in s.scalars}
        for log in run.ranks
    ]
    common = sorted(set.intersection(*map(set, of_ranks))) if of_ranks else []
    return np.array([[of_rank[number] for number in common] for of_rank in of_ranks])
