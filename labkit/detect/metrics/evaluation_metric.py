"""Is a metric that of the whole evaluation set, each sample once?

A sampler repeats samples so that every rank gets equally many, and the repeated ones count twice. Ranks with unequal parts
average their means, and each part counts as much as the largest. One rank evaluates while the others wait. Judged by how
many samples each rank evaluated, and by the numbers that ranks then reduce.
"""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..under_load import is_heavy
from ..verdict import Verdict, answering
from .measures import Evaluation, Reduction, evaluations

NAME = "evaluation-metric"
QUESTION = "Is a metric that of the whole evaluation set, each sample once?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

WORTH = 0.005
"""Share of the samples that count twice, or of a metric by which it is off, below which nothing is said."""

UNEQUAL = 0.05
"""Relative difference of the parts of two ranks that is worth a word."""

LARGE = 0.02
"""By how much the mean of the batches' means must be off to be a fault: many a right script takes it."""

LONG_S, LONG = 1.0, 0.2
"""Seconds, and share of the run, that one rank's evaluations must take."""


def detect(record: Record) -> Verdict:
    """Judge each evaluation of the run under study."""
    run = record.run
    again = next((e for log in run.ranks for e in log.events if e.name == "reduced_again"), None)
    if again is not None:
        return _answer("found", "sum-is-summed-again", where=str(again.fields["where"]) or None, ranks=run.world_size)
    made = evaluations(run)
    of_batches = _of_batches(run)
    if of_batches is not None and of_batches.status == "found":
        return of_batches
    if not made and of_batches is None:
        return _answer("not_applicable", "no-evaluation-seen")
    if made and all(not sum(rows or 0 for rows in one.rows) for one in made):
        return _answer("found", "nothing-is-evaluated", {"evaluations": Quantity(len(made))}, passes=len(made))
    if run.world_size == 1 or not made:
        return of_batches or _answer("clear", "one-rank-evaluates-all")
    verdicts = [verdict for one in made if (verdict := _of_parts(one) or _of_padding(one)) is not None]
    for status in ("found", "inconclusive"):
        for verdict in verdicts:
            if verdict.status == status:
                return verdict
    if of_batches is not None:
        return of_batches
    return _of_waiting(run, made) or _answer("clear", "each-sample-counts-once", {"evaluations": Quantity(len(made))})


def _of_batches(run: Run) -> Verdict | None:
    """Where the mean of the batches' means is kept, and the last batch is smaller."""
    kept = [event.fields for log in run.ranks for event in log.events if event.name == "batch_means"]
    means = [(float(of["plain"]), float(of["weighted"])) for of in kept]
    off = [abs(plain - weighted) / max(abs(weighted), 1e-12) for plain, weighted in means]
    if not kept or max(off) <= WORTH:
        return None
    of, by = max(zip(kept, off, strict=True), key=lambda one: one[1])
    evidence = {
        "mean_of_the_batches": Quantity(float(of["plain"])),
        "mean_of_the_samples": Quantity(float(of["weighted"])),
        "batches": Quantity(int(of["batches"])),
        "fewest": Quantity(int(of["fewest"]), "samples in a batch"),
        "most": Quantity(int(of["most"]), "samples in a batch"),
    }
    where = str(of["where"]) or None
    if by <= LARGE:
        return _answer("inconclusive", "mean-of-unequal-batches", evidence, where=where, off=by)
    return _answer("found", "mean-of-unequal-batches", evidence, where=where, off=by)


def _of_parts(one: Evaluation) -> Verdict | None:
    """Where ranks with unequal parts average what is a mean of each part."""
    rows = one.everywhere
    if not rows or not min(rows) or max(rows) - min(rows) <= UNEQUAL * max(rows) or _counts(one.reductions):
        return None
    for reduction in one.reductions:
        given = reduction.values
        if not reduction.averaged or any(len(values) != 1 for values in given):
            continue
        values = np.array([values[0] for values in given])
        if (values == np.round(values)).all():
            continue  # counts of something, and not means
        if reduction.by_hand and not _are_shares(values, rows):
            continue  # nothing says that these are means over the samples
        plain, weighted = float(values.mean()), float(np.average(values, weights=rows))
        off = abs(plain - weighted) / max(abs(weighted), 1e-12)
        evidence = {
            "samples_of_each_rank": Quantity(", ".join(map(str, rows))),
            "mean_of_the_ranks": Quantity(plain),
            "mean_of_the_samples": Quantity(weighted),
        }
        if off > WORTH:
            return _answer("found", "means-of-unequal-parts", evidence, where=reduction.where or None, off=off, rows=rows)
    return None


def _are_shares(values: np.ndarray, rows: tuple[int, ...]) -> bool:
    """Whether each rank's number is a count of its samples divided by how many they are, as an accuracy is."""
    counts = values * np.array(rows)
    return bool((np.abs(counts - np.round(counts)) < 1e-3).all() and (values >= 0).all() and (values <= 1).all())


def _counts(reductions: list[Reduction]) -> bool:
    """Whether the ranks reduce how many samples, or tokens, each has evaluated."""
    for reduction in reductions:
        for own in zip(*reduction.values, strict=False):
            whole = all(value == round(value) for value in own)
            if whole and all(value >= rows > 0 for value, rows in zip(own, reduction.rows, strict=True)):
                return True
    return False


def _of_padding(one: Evaluation) -> Verdict | None:
    """Where a sampler repeats samples so that every rank gets equally many, and the ranks add up what they found."""
    rows, size = one.everywhere, one.size
    padding = sum(rows) - size
    if not rows or not size or not 0 < padding < len(rows) or max(rows) >= size:
        return None
    sums = [
        sum(own)
        for reduction in one.reductions
        if reduction.operation == "SUM"
        for own in zip(*reduction.values, strict=False)
    ]
    evidence = {"evaluated": Quantity(sum(rows), "samples, by all ranks"), "samples": Quantity(size, "in the data set")}
    told = {"padding": padding, "size": size}
    if size in sums:
        return None
    where = next((reduction.where for reduction in one.reductions), "") or None
    if sum(rows) in sums or (sums and padding >= WORTH * size):
        return _answer("found", "repeated-samples-count", evidence, where=where, **told)
    return _answer("inconclusive", "repeated-samples-may-count", evidence, **told)


def _of_waiting(run: Run, made: list[Evaluation]) -> Verdict | None:
    """Where one rank evaluates, for a large part of the run, and the others do not."""
    alone = [one for one in made if sum(rows is not None for rows in one.rows) == 1]
    steps = [step for log in run.ranks for step in log.steps]
    if not alone or not steps:
        return None
    seconds = sum(sum(one.seconds) for one in alone)
    length = (max(step.end_ns for step in steps) - min(step.start_ns for step in steps)) / 1e9 + alone[-1].seconds[0]
    share = min(1.0, seconds / max(length, 1e-9))
    if seconds < LONG_S or share < LONG:
        return None
    evidence = {"evaluations": Quantity(len(alone)), "seconds": Quantity(seconds), "share_of_the_run": Quantity(share)}
    if is_heavy(run):
        return _answer("inconclusive", "one-rank-evaluates-on-a-busy-machine", evidence, share=share)
    waste = share * (1 - 1 / run.world_size)
    return _answer("found", "one-rank-evaluates", evidence, waste=waste, share=share, others=run.world_size - 1)
