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
from ..verdict import Verdict, answering, either
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

FIX = (
    "lower the learning rate below 2·sin(π/(2(2τ+1)))/λ for a staleness τ and a curvature λ, and drop the momentum: not "
    "waiting acts like momentum already; or bound the staleness; or average the gradients synchronously"
)


def detect(record: Record) -> Verdict:
    """Judge the run under study beside its synchronous reference."""
    run = record.run
    of_run = pushes(run)
    if of_run is None:
        return _answer(
            "not_applicable",
            cause="the program did not record which version of the weights its gradients were computed on",
            fix='record probe.scalar("version_pulled", …) and probe.scalar("version_pushed", …) in each step of each rank',
        )
    evidence = _evidence(of_run)
    if of_run.staleness.min() < 0:
        return _answer(
            "inconclusive",
            evidence,
            cause="some gradients were applied to an earlier version than they were computed on, which cannot be",
            fix="count versions in one place, at the server: one more with each update",
        )
    if not of_run.staleness.any():
        return _answer("clear", evidence, cause="every gradient was applied to the very weights that it was computed on")
    own = loss_by_samples(run)
    if own is None:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"{_stale(of_run)}, but no loss was recorded to see what comes of it",
            fix='record probe.scalar("loss_local", …) in each step',
        )
    evidence |= {"loss_first": Quantity(own.first, FIRST_SAID), "loss_last": Quantity(own.last, LAST_SAID)}
    limits, where = stability(record), str(run.fact("loop_where", "")) or None
    if limits is not None:
        evidence |= _of_theory(limits)
    reference = loss_by_samples(record.runs[Role.SYNC]) if Role.SYNC in record.runs else None
    if reference is None:
        return _without_reference(of_run, own, limits, evidence, where)
    return _beside(of_run, own, reference, limits, evidence, where)


def _beside(
    of_run: Pushes,
    own: Losses,
    reference: Losses,
    limits: Stability | None,
    evidence: dict[str, Quantity],
    where: str | None,
) -> Verdict:
    evidence |= {"loss_last_sync": Quantity(reference.last, LAST_SAID)}
    if own.last < own.first * (1 - LEARNS) and own.last + 3 * own.last_error < reference.last:
        return _harmless(of_run, own, reference, evidence)
    fall = reference.first - reference.last
    if not fall > LEARNS * abs(reference.first):  # also where it is no number
        return _answer(
            "inconclusive",
            evidence,
            cause="the synchronous run of equal settings does not learn either: staleness is not what is wrong, or not all",
            fix="lower the learning rate, or train longer, until the synchronous run learns; then compare",
        )
    if not math.isfinite(own.last):
        missing, error = math.inf, 0.0
    else:
        missing = (own.last - reference.last) / fall
        error = 3 * math.hypot(own.last_error, reference.last_error) / fall
    evidence |= {
        "progress_missing": Quantity(min(missing, 1e9), "x the synchronous run's"),
        "noise": Quantity(error, "x that progress"),
    }
    if missing - error > HARMLESS and missing > HARM:
        return _answer(
            "found",
            evidence,
            cause=f"{_stale(of_run)}, and the mean loss of the last gradients is {own.last:.3g} where a synchronous run of "
            f"the same learning rate and momentum has {reference.last:.3g} after as many samples{_beyond(limits)}",
            fix=FIX,
            where=where,
            waste=_waste(own, reference),
        )
    if missing + error < HARM:
        return _harmless(of_run, own, reference, evidence)
    return _answer(
        "inconclusive",
        evidence,
        cause=f"{_stale(of_run)}; the mean loss of the last gradients is {own.last:.3g}, in the synchronous run "
        f"{reference.last:.3g}: too "
        "close for the noise of a few batches to tell harm from none",
        fix="train longer, so that the two ends are told apart",
    )


def _harmless(of_run: Pushes, own: Losses, reference: Losses, evidence: dict[str, Quantity]) -> Verdict:
    return _answer(
        "clear",
        evidence,
        cause=f"{_stale(of_run)}, and it does no harm: the mean loss of the last gradients is {own.last:.3g}, and "
        f"{reference.last:.3g} in a synchronous run of the same learning rate and momentum over as many samples",
    )


def _without_reference(
    of_run: Pushes, own: Losses, limits: Stability | None, evidence: dict[str, Quantity], where: str | None
) -> Verdict:
    """No synchronous run: only what theory excludes can be answered."""
    fails = not own.last < own.first * (1 - LEARNS)
    if limits is not None and fails and limits.limit < limits.rate < limits.limit_without_delay:
        return _answer(
            "found",
            evidence,
            cause=f"{_stale(of_run)}, and the loss does not fall{_beyond(limits)}, yet is within what fresh gradients bear",
            fix=FIX,
            where=where,
            waste=1.0,
        )
    what = "does not fall" if fails else "falls"
    return _answer(
        "inconclusive",
        evidence,
        cause=f"{_stale(of_run)}; the loss {what}, but what a synchronous run would make of it is not on record",
        fix=either(
            lab="add a synchronous run with the same settings and samples in the role sync (--set compare=yes)",
            script="run the same synchronously over as many samples, and compare the losses",
        ),
    )


def _stale(of_run: Pushes) -> str:
    mean, most = float(of_run.staleness.mean()), int(of_run.staleness.max())
    return f"gradients are {mean:.2g} versions old on average, {most} at most"


def _beyond(limits: Stability | None) -> str:
    if limits is None or limits.times_the_limit <= 1:
        return ""
    return f"; lr·curvature is {limits.times_the_limit:.2g} times what a delay of {limits.delay} bears"


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
