"""Does each target weigh the same, whichever rank or micro-batch it is in?

A mean over the targets of one micro-batch, averaged with the means of others and over ranks, gives a target of a small
micro-batch a larger weight than one of a large one. Where counts differ much, as with texts of unequal length, the loss is
another than that of the same data in one batch.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from ...record.quantity import Quantity, share
from ...record.schema import Record, Run
from ..verdict import Verdict, answering
from .measures import MEAN, SUM, Part, Window, forms, where_of, windows
from .taken import NEITHER, OWN_RANK, fit, looks

NAME = "loss-weighting"
QUESTION = "Does each target weigh the same, whichever micro-batch or rank it is in?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

ENOUGH = 4
"""Updates before anything is said."""

FOUND, SUSPECTED = 0.125, 0.04
"""Share of an update's weight that lies on other targets than it should, in the usual update."""

OF_TARGETS = ("NllLoss", "MseLoss", "BinaryCrossEntropy", "SmoothL1Loss", "HuberLoss", "KlDiv", "Ctc")
"""Losses of whose targets a script means each to weigh the same. A mean of something else may be of few on purpose."""


def detect(record: Record) -> Verdict:
    """Judge the updates of all ranks together, or of each alone where ranks train apart."""
    run = record.run
    of_ranks = [windows(log) for log in run.ranks]
    if not all(of_ranks):
        return _answer("not_applicable", "no-losses-looked-at")
    apart = any(fit(look).what == OWN_RANK for look in looks(run))
    updates = [[window] for window in of_ranks[0]] if apart else _together(of_ranks)
    weighed = [(row, _misplaced(row)) for row in updates if sum(len(window.parts) for window in row) > 1]
    known = [(row, found) for row, found in weighed if found is not None]
    if not weighed:
        return _answer("not_applicable", "one-micro-batch-an-update")
    if not known or len(known) < len(weighed) / 2:
        return _answer("not_applicable", "targets-not-known")
    if len(known) < ENOUGH:
        return _answer("inconclusive", "too-few-windows", updates=len(known))
    return _of_shares(run, known)


def _together(of_ranks: Sequence[Sequence[Window]]) -> list[list[Window]]:
    """Update by update, the windows of all ranks: those that every rank looked at."""
    by_step = [{window.step: window for window in windows} for windows in of_ranks]
    return [[of_rank[step] for of_rank in by_step] for step in by_step[0] if all(step in of_rank for of_rank in by_step)]


def _of_shares(run: Run, known: list[tuple[list[Window], float]]) -> Verdict:
    usual = statistics.median(found for _, found in known)
    row, _ = min(known, key=lambda one: abs(one[1] - usual))
    counts = [part.targets for window in row for part in window.parts]
    evidence = {
        "updates": Quantity(len(known), "compared"),
        "misplaced": share(usual, "of an update's weight, the median"),
        "fewest": Quantity(min(counts), "targets in a micro-batch of such an update"),
        "most": Quantity(max(counts), "targets in a micro-batch of such an update"),
    }
    if usual < SUSPECTED:
        return _answer("clear", "targets-weigh-alike", evidence)
    site = row[0].parts[-1].site
    where = where_of(run, site)
    numbers = {"share": usual, "fewest": min(counts), "most": max(counts)}
    within = any(len({part.targets for part in window.parts}) > 1 for window in row)
    if usual < FOUND or not _of_targets(run, site):
        return _answer("inconclusive", "targets-weigh-somewhat-unequally", evidence, where=where, **numbers)
    if _changed(run):  # the script may weigh the ranks' gradients by their targets
        return _answer("inconclusive", "gradients-changed-by-the-script", evidence, where=where)
    reason = "unequal-micro-batches-averaged" if within else "unequal-ranks-averaged"
    return _answer("found", reason, evidence, where=where, **numbers)


def _misplaced(row: Sequence[Window]) -> float | None:
    """Share of the weight of one update that lies on other targets than if each weighed the same; None where not known."""
    parts: list[Part] = [part for window in row for part in window.parts]
    if len({part.site for part in parts}) > 1 or any(part.kind not in (MEAN, SUM) for part in parts):
        return None
    targets, weights = sum(part.targets for part in parts), sum(part.share for part in parts)
    if not all(part.targets for part in parts) or not weights:
        return None
    return sum(abs(part.share / weights - part.targets / targets) for part in parts) / 2


def _changed(run: Run) -> bool:
    """Whether what the optimizer takes is no mean over the ranks of what the backward passes gave, in most updates."""
    fits = [fit(look).what for look in looks(run)]
    return 2 * fits.count(NEITHER) > len(fits)


def _of_targets(run: Run, site: int) -> bool:
    named = [str(e.fields["loss"]) for e in forms(run) if str(e.fields["where"]).endswith(f":{site}")]
    return bool(named) and all(name.startswith(OF_TARGETS) for name in named)
