"""Are gradients computed on weights that have moved on since, and does it harm?

Three answers, not two. Every gradient fresh: clear. Gradients stale, and the loss falls as far as a synchronous run's of
equal settings over equally many samples: clear as well, and said to be so. Stale, and the loss falls less: found. What
cannot be told without a synchronous run to compare with is inconclusive.

A script of one's own records `version_pulled` and `version_pushed` in each step (see `record.measures_staleness`), and
the loss; its synchronous run goes beside it in the role "sync".
"""

from __future__ import annotations

import math

import numpy as np

from ...record.quantity import Quantity
from ...record.roles import Role
from ...record.schema import Record
from ..catalogue import Said, said
from ..verdict import Verdict, answering
from .measures import Losses, Pushes, Stability, loss_by_samples, pushes, stability

NAME = "stale-gradients"
QUESTION = "Do stale gradients harm the training?"
_answer = answering(NAME, QUESTION)

HARM = 0.2
"""Share of the synchronous run's fall of the loss that must be missing before it is called harm."""

HARMLESS = 0.1
"""Share that may be missing without a word."""

LEARNS = 0.1
"""Share of its first loss that a synchronous run must lose before anything can be compared with it."""

FIRST_SAID, LAST_SAID = "mean of the first gradients", "mean of the last gradients"
"""What losses are of: the loss of the final weights on all data is another number."""


def detect(record: Record) -> Verdict:
    """Judge the run under study beside its synchronous reference."""
    run = record.run
    of_run = pushes(run)
    if of_run is None:
        return _answer("not_applicable", "versions-not-recorded")
    evidence = _evidence(of_run)
    if of_run.staleness.min() < 0:
        return _answer("inconclusive", "versions-run-backwards", evidence)
    if not of_run.staleness.any():
        return _answer("clear", "every-gradient-is-fresh", evidence)
    own, stale = loss_by_samples(run), _stale(of_run)
    if own is None:
        return _answer("inconclusive", "stale-and-no-loss-recorded", evidence, stale=stale)
    evidence |= {"loss_first": Quantity(own.first, FIRST_SAID), "loss_last": Quantity(own.last, LAST_SAID)}
    limits, where = stability(record), str(run.fact("loop_where", "")) or None
    if limits is not None:
        evidence |= _of_theory(limits)
    reference = loss_by_samples(record.runs[Role.SYNC]) if Role.SYNC in record.runs else None
    if reference is None:
        return _without_reference(stale, own, limits, evidence, where)
    return _beside(stale, own, reference, limits, evidence, where)


def _beside(
    stale: Said, own: Losses, reference: Losses, limits: Stability | None, evidence: dict[str, Quantity], where: str | None
) -> Verdict:
    loss, sync = own.last, reference.last
    evidence |= {"loss_last_sync": Quantity(sync, LAST_SAID)}
    if loss < own.first * (1 - LEARNS) and loss + 3 * own.last_error < sync:
        return _answer("clear", "stale-gradients-do-no-harm", evidence, stale=stale, loss=loss, sync=sync)
    if not reference.first - sync > LEARNS * abs(reference.first):  # also where it is no number
        return _answer("inconclusive", "synchronous-run-does-not-learn", evidence)
    missing, error = _missing(own, reference)
    evidence |= {
        "progress_missing": Quantity(min(missing, 1e9), "x the synchronous run's"),
        "noise": Quantity(error, "x that progress"),
    }
    if missing - error > HARMLESS and missing > HARM:
        return _harm(stale, own, reference, limits, evidence, where)
    if missing + error < HARM:
        return _answer("clear", "stale-gradients-do-no-harm", evidence, stale=stale, loss=loss, sync=sync)
    return _answer("inconclusive", "harm-hidden-by-noise", evidence, stale=stale, loss=loss, sync=sync)


def _missing(own: Losses, reference: Losses) -> tuple[float, float]:
    """What is missing of the synchronous run's fall of the loss, as a share of it, and three standard errors of that."""
    if not math.isfinite(own.last):
        return math.inf, 0.0
    fall = reference.first - reference.last
    return (own.last - reference.last) / fall, 3 * math.hypot(own.last_error, reference.last_error) / fall


def _harm(
    stale: Said, own: Losses, reference: Losses, limits: Stability | None, evidence: dict[str, Quantity], where: str | None
) -> Verdict:
    """With what theory says of it, where it says that so stale a gradient cannot be borne."""
    loss, sync, waste = own.last, reference.last, _waste(own, reference)
    if limits is None or limits.times_the_limit <= 1:
        return _answer(
            "found", "stale-gradients-do-harm", evidence, where=where, waste=waste, stale=stale, loss=loss, sync=sync
        )
    return _answer(
        "found",
        "stale-gradients-do-harm-beyond-the-limit",
        evidence,
        where=where,
        waste=waste,
        stale=stale,
        loss=loss,
        sync=sync,
        times=limits.times_the_limit,
        delay=limits.delay,
    )


def _without_reference(
    stale: Said, own: Losses, limits: Stability | None, evidence: dict[str, Quantity], where: str | None
) -> Verdict:
    """No synchronous run: only what theory excludes can be answered."""
    if own.last < own.first * (1 - LEARNS):
        return _answer("inconclusive", "loss-falls-and-no-synchronous-run", evidence, stale=stale)
    if limits is not None and limits.limit < limits.rate < limits.limit_without_delay:
        return _answer(
            "found",
            "unstable-by-the-delay-alone",
            evidence,
            where=where,
            waste=1.0,
            stale=stale,
            times=limits.times_the_limit,
            delay=limits.delay,
        )
    return _answer("inconclusive", "loss-does-not-fall-and-no-synchronous-run", evidence, stale=stale)


def _stale(of_run: Pushes) -> Said:
    return said("how-stale", mean=float(of_run.staleness.mean()), most=int(of_run.staleness.max()))


def _waste(own: Losses, reference: Losses) -> float:
    """Share of the samples that a synchronous run would not have needed to get as far."""
    if not own.last < own.first:
        return 1.0
    reached = np.flatnonzero(reference.loss <= own.last)
    needed = reference.samples[reached[0]] if len(reached) else reference.samples[-1]
    return float(max(0.0, 1 - needed / own.samples[-1]))


def _evidence(of_run: Pushes) -> dict[str, Quantity]:
    return {
        "gradients": Quantity(len(of_run)),
        "staleness_mean": Quantity(float(of_run.staleness.mean()), "versions"),
        "staleness_max": Quantity(int(of_run.staleness.max()), "versions"),
    }


def _of_theory(limits: Stability) -> dict[str, Quantity]:
    return {
        "lr_times_curvature": Quantity(limits.rate),
        "stable_below": Quantity(limits.limit, f"for a delay of {limits.delay}", "simulated"),
        "stable_below_without_delay": Quantity(limits.limit_without_delay, "", "simulated"),
    }
