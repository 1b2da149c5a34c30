"""Is the loss of K micro-batches divided by K, once?

Gradients of micro-batches add up. Means that nobody divides give an update K times too large; a framework that divides and a
loop that does too give one K times too small. Adam takes nearly the same steps with either, but clipping, weight decay of
the gradient and logged norms do not.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..verdict import Verdict, answering
from .measures import MEAN, SEVERAL, Window, divided_by, micro_batches, where_of, windows
from .taken import ALL_RANKS, OWN_RANK, fit, looks

NAME = "accumulated-loss"
QUESTION = "Is the loss of K micro-batches divided by K, once?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

ENOUGH = 3
"""Updates that must say the same."""

NEAR = 1e-3


def detect(record: Record) -> Verdict:
    """Judge the usual update of rank 0; every rank runs the same loop."""
    run = record.run
    seen = windows(run.ranks[0])
    if not seen:
        return _answer("not_applicable", "no-losses-looked-at")
    size = micro_batches(seen)
    if size < 2:
        return _answer("not_applicable", "one-pass-an-update")
    usual = [window for window in seen if len(window.parts) == size]
    if len(usual) < ENOUGH:
        return _answer("inconclusive", "too-few-windows", updates=len(usual))
    evidence = {"updates": Quantity(len(seen)), "micro_batches": Quantity(size, "an update")}
    if not all(_one_loop(window) for window in usual):
        return _answer("not_applicable", "passes-are-no-micro-batches", evidence)
    factor = _factor(run)
    if factor is None:
        return _answer("inconclusive", "loss-of-micro-batches-not-known", evidence)
    shares = [factor * sum(part.share for part in window.parts) for window in usual]
    share = statistics.median(shares)
    evidence["weight"] = Quantity(share, "of an update's micro-batches together, 1 for their mean")
    return _of_share(run, seen, usual, share, evidence)


def _of_share(run: Run, seen: list[Window], usual: list[Window], share: float, evidence: dict[str, Quantity]) -> Verdict:
    size, site = len(usual[0].parts), usual[0].parts[-1].site
    where = where_of(run, site)
    if _is(share, size) and all(_is(part.share, 1.0) for window in usual for part in window.parts):
        if not _micro(usual):
            return _answer("inconclusive", "passes-may-be-losses-of-one-batch", evidence, passes=size)
        return _answer("found", "accumulation-not-divided", evidence, where=where, passes=size)
    if _is(share, 1 / size) and sum(_is(number, size) for number in divided_by(run, site)) > 1:
        return _answer("found", "loss-divided-twice", evidence, where=where, passes=size)
    if not _is(share, 1.0):
        return _answer("clear", "micro-batches-weighted-by-the-script", evidence)
    short = [window for window in seen if len(window.parts) < size]
    light = [w for w in short if _is(sum(part.share for part in w.parts), len(w.parts) / size)]
    if light:
        least = min(len(window.parts) for window in light)
        return _answer("inconclusive", "last-window-too-light", evidence, where=where, passes=least, of=size)
    return _answer("clear", "micro-batches-are-averaged", evidence)


def _is(value: float, expected: float) -> bool:
    return abs(value - expected) <= NEAR * expected


def _one_loop(window: Window) -> bool:
    """Whether backward is called on one line, each time on one mean or on several parts."""
    return len({part.site for part in window.parts}) == 1 and all(part.kind in (MEAN, SEVERAL) for part in window.parts)


def _micro(usual: Sequence[Window]) -> bool:
    """Whether each pass is of a batch of its own: several losses of one batch are added up rightly."""
    for window in usual:
        inputs = {part.inputs for part in window.parts}
        if window.fetches < len(window.parts) and (0 in inputs or len(inputs) < len(window.parts)):
            return False
    return True


def _factor(run: Run) -> float | None:
    """What the script multiplies gradients by between the passes and the update; None where that is not known."""
    fits = [fit(look) for look in looks(run) if look.passes > 1]
    known = [one.factor for one in fits if one.what in (ALL_RANKS, OWN_RANK)]
    if not known or len(known) < len(fits) / 2:
        return None
    factor = statistics.median(known)
    return factor if all(abs(one - factor) < 0.02 * abs(factor) for one in known) else None
