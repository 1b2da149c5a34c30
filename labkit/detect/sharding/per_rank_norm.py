"""Do ranks clip by different norms?

The norm of a gradient is a number of the whole model: after it was averaged or sharded, all ranks must find the same. A
function that sees a shard alone finds the shard's norm; ranks then scale their parts differently, and the update points
elsewhere.
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..agreement.measures import held, made
from ..runs import train_steps
from ..verdict import Verdict, answering

NAME = "per-rank-norm"
QUESTION = "Does each rank clip by a gradient norm of its own?"
_answer = answering(NAME, QUESTION)

ROUNDING, DIFFERENT = 1e-5, 1e-3
"""Relative differences: below the first is the order of sums, above the second another norm."""


def detect(record: Record) -> Verdict:
    """Judge the scalars `grad_norm` of all ranks, in the run under study."""
    if record.run.fact("watched_by") == "doctor":
        return _of_script(record.run)
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


def _of_script(run: Run) -> Verdict:
    """Judge what the doctor saw of a script: norms that clip_grad_norm_ found, and factors by which shards were scaled."""
    norms, factors = _by_update(run, "clipped", "norm"), _by_update(run, "sharded_scaling", "factor")
    if run.world_size == 1 or not (norms.size or factors.size):
        return _answer("not_applicable", "no-norms-of-one-step")
    looked = [one for one in held(run) if not one.start]
    own = sum(bool(one.gradients_apart) for one in made(run) if one.comparable)
    if any(one.comparable and one.whole and one.apart for one in looked) or (own > 1 and all(one.whole for one in looked)):
        return _answer("not_applicable", "ranks-hold-weights-of-their-own")
    spread, scaled = _spread(norms), _spread(factors)
    evidence = {"norms_that_differ": Quantity(int((spread > DIFFERENT).sum()), f"of {norms.shape[1]}")}
    if factors.size:
        evidence["factors_that_differ"] = Quantity(int((scaled > DIFFERENT).sum()), f"of {factors.shape[1]}")
    if len(spread):
        worst = norms[:, int(spread.argmax())]
        evidence["lowest_norm"] = Quantity(float(worst.min()), "on one rank")
        evidence["highest_norm"] = Quantity(float(worst.max()), "on another, in the same step")
    where = next((str(e.fields["where"]) for e in run.ranks[0].events if e.name == "clipped"), "") or None
    by_norm = len(spread) > 1 and np.median(spread) > DIFFERENT
    by_factor = len(scaled) > 1 and np.median(scaled) > DIFFERENT
    if not (by_norm or by_factor):
        return _answer("clear", "one-norm-on-all-ranks", evidence)
    if any(not one.comparable and one.whole for one in looked) and not by_factor:
        return _answer("inconclusive", "norms-of-different-parts", evidence)
    where = where or str(run.fact("loop_where", "")) or None
    reason = "each-rank-has-a-norm-of-its-own" if by_norm else "each-rank-scales-by-its-own-factor"
    return _answer("found", reason, evidence, where=where)


def _by_update(run: Run, name: str, field: str) -> np.ndarray:
    """[ranks, updates]: a number of an event, of the updates for which every rank has one; all finite."""
    of_ranks = [
        {int(e.fields["update"]): float(e.fields[field]) for e in log.events if e.name == name}  # the last of an update
        for log in run.ranks
    ]
    common = sorted(set.intersection(*map(set, of_ranks))) if of_ranks else []
    values = np.array([[of_rank[update] for update in common] for of_rank in of_ranks], dtype=np.float64)
    return values[:, np.isfinite(values).all(axis=0)] if common else np.zeros((len(of_ranks), 0))


def _spread(values: np.ndarray) -> np.ndarray:
    """Of each column, as a share of its largest."""
    return np.ptp(values, axis=0) / np.maximum(np.abs(values).max(axis=0), 1e-300) if values.size else np.zeros(0)
