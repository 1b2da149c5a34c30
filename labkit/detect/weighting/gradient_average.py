"""Does each update take the mean over the ranks of what every backward pass gave, once?

Adam and clipping hide a constant factor in the gradient: the loss falls the same, and weight decay, clipping and logged
norms are off by it. So what the optimizer took is compared with what the ranks' passes gave. Whether a factor is wrong
depends on the loss: a sum that is divided by the targets of all ranks is to be added up over the ranks, a mean is not.
"""

from __future__ import annotations

import re
import statistics

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..verdict import Verdict, answering
from .measures import MEAN, SEVERAL, SUM, Window, divided_by, divided_in_source, where_of, windows
from .taken import ALL_RANKS, LAST_OWN, NEITHER, OWN_RANK, UNEQUAL, Fit, Look, fit, left_out, looks

NAME = "gradient-average"
QUESTION = "Does each update take the mean over the ranks of what every backward pass gave, once?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

ENOUGH = 2
"""Updates that must say the same."""

NEAR = 0.02
"""How near to a whole factor counts as it."""

LOST = 0.05
"""Share of a gradient that sums in 16 bits must lose before it is worth a word."""

RANKS_IN_SOURCE = re.compile(
    r"world|num_replicas|nproc|num_proc|n_?gpus?\b|num_gpus|n_?ranks|num_ranks|\bws\b|size\(\)$", re.I
)


def detect(record: Record) -> Verdict:
    """Judge each optimizer by the updates that were looked at; the first with a fault is told."""
    run = record.run
    unwaited = _not_waited_for(run)
    if unwaited is not None:
        return unwaited
    seen = looks(run)
    if not seen:
        if left_out(run):
            return _answer("not_applicable", "gradients-are-parts", {"parts": Quantity(left_out(run), "tensors")})
        return _answer("not_applicable", "no-gradients-compared")
    by_optimizer = {look.optimizer: [one for one in seen if one.optimizer == look.optimizer] for look in seen}
    verdicts = [_of_optimizer(run, of_one) for of_one in by_optimizer.values()]
    for status in ("found", "inconclusive", "clear"):
        for verdict in verdicts:
            if verdict.status == status:
                return verdict
    return verdicts[0]


def _not_waited_for(run: Run) -> Verdict | None:
    """Whether optimizers stepped while reductions of their gradients, begun by the script, were under way."""
    works = [
        (step.counts.get("gradient_works", 0), step.counts.get("gradient_works_not_waited_for", 0))
        for log in run.ranks
        for step in log.steps
    ]
    late = [left for _, left in works if left]
    if len(late) < ENOUGH:
        return None
    where = next((str(e.fields["where"]) for log in run.ranks for e in log.events if e.name == "not_waited_for"), "")
    evidence = {
        "reductions": Quantity(sum(all_of for all_of, _ in works), "that the script begins in the background"),
        "not_waited_for": Quantity(sum(late), "of them, before the optimizer's step"),
    }
    return _answer("found", "reduction-not-waited-for", evidence, where=where or None, updates=len(late))


def _of_optimizer(run: Run, seen: list[Look]) -> Verdict:
    fits = [(look, fit(look)) for look in seen]
    evidence = {"compared": Quantity(len(fits), "updates"), "ranks": Quantity(run.world_size)}
    for judge in (_lost_in_16_bits, _some_not_reduced, _of_last_pass, _not_reduced):
        verdict = judge(run, fits, evidence)
        if verdict is not None:
            return verdict
    whole = [(look, one) for look, one in fits if one.what == ALL_RANKS and not one.own]
    if len(whole) < min(ENOUGH, len(fits)) or len(whole) < len(fits) / 2:
        return _answer("inconclusive", "gradients-changed-by-the-script", evidence)
    return _of_factor(run, whole, evidence)


Fits = list[tuple[Look, Fit]]


def _lost_in_16_bits(run: Run, fits: Fits, evidence: dict[str, Quantity]) -> Verdict | None:
    """Sums of many gradients in 16 bits stop growing."""
    narrow = [(look, one) for look, one in fits if look.narrow and look.passes > 1]
    lost = [one for look, one in narrow if _lost(look) > LOST and one.what in (ALL_RANKS, NEITHER, UNEQUAL)]
    if len(lost) < ENOUGH or len(lost) < len(narrow) / 2:
        return None
    looked = [look for look, _ in narrow if _lost(look) > LOST]
    if any(look.passes < 8 for look in looked):
        return None
    share = statistics.median(_lost(look) for look in looked)
    evidence = evidence | {
        "lost": Quantity(share, "of the gradient, the median"),
        "micro_batches": Quantity(looked[0].passes, "backward passes an update"),
        "formats": Quantity(looked[0].formats),
    }
    where = str(run.fact("loop_where", "")) or None
    return _answer("found", "gradients-lost-in-16-bits", evidence, where=where, share=share, passes=looked[0].passes)


def _lost(look: Look) -> float:
    """Share of the mean over ranks that is missing in, or strange to, what was taken."""
    mean = look.given.mean(0)
    size = float((mean**2).sum())
    return float((((look.taken - mean) ** 2).sum() / len(look.taken) / size) ** 0.5) if size else 0.0


def _some_not_reduced(run: Run, fits: Fits, evidence: dict[str, Quantity]) -> Verdict | None:
    """Some parameters are each rank's own: whether that is right, `replicas-differ` tells by their weights."""
    partly = [(look, one) for look, one in fits if one.own]
    if not partly:
        return None
    look, one = partly[-1]
    names = [look.names[at] for at in one.own if at < len(look.names) and look.names[at]]
    said = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "") or "not named"
    evidence = evidence | {"not_reduced": Quantity(len(one.own), "groups of parameters")}
    return _answer("inconclusive", "some-gradients-stay-on-their-rank", evidence, names=said)


def _of_last_pass(run: Run, fits: Fits, evidence: dict[str, Quantity]) -> Verdict | None:
    """The last micro-batch is not in the reduction, or weighs otherwise than those before it."""
    own = [look for look, one in fits if one.what == LAST_OWN]
    where = str(run.fact("loop_where", "")) or None
    if len(own) >= ENOUGH and run.world_size > 1:
        return _answer("found", "reduced-before-the-last-pass", evidence, where=where, passes=own[-1].passes)
    unequal = [(look, one) for look, one in fits if one.what == UNEQUAL and look.passes > 1]
    if len(unequal) >= ENOUGH and len(unequal) > len(fits) / 2:
        look, one = unequal[-1]
        evidence = evidence | {"last_over_earlier": Quantity(one.factor, "x the weight of the passes before it")}
        return _answer("inconclusive", "passes-weigh-unequally", evidence, factor=one.factor, passes=look.passes)
    return None


def _not_reduced(run: Run, fits: Fits, evidence: dict[str, Quantity]) -> Verdict | None:
    if sum(one.what == OWN_RANK for _, one in fits) > len(fits) / 2:
        return _answer("not_applicable", "gradients-stay-on-their-rank", evidence)
    return None


def _of_factor(run: Run, whole: Fits, evidence: dict[str, Quantity]) -> Verdict:
    """The mean of all ranks was taken, times a factor: is it the right one for this loss?"""
    factor = statistics.median(one.factor for _, one in whole)
    steady = all(abs(one.factor - factor) <= NEAR * abs(factor) for _, one in whole)
    evidence = evidence | {"taken": Quantity(factor, "x the mean over the ranks of what the passes gave")}
    if not steady:
        return _answer("clear", "gradients-scaled-by-the-script", evidence)
    weights = _weights(run, whole)
    if weights:
        evidence["weight"] = Quantity(factor * statistics.median(weights), "of all targets together, 1 for a mean over all")
    ranks = run.world_size
    if ranks > 1:
        for judge in (_summed, _divided_again):
            verdict = judge(run, whole, factor, weights, evidence)
            if verdict is not None:
                return verdict
    return _answer("clear", "gradients-are-the-mean" if _is(factor, 1.0) else "gradients-scaled-by-the-script", evidence)


def _is(value: float, expected: float) -> bool:
    return abs(value - expected) <= NEAR * expected


def _weights(run: Run, whole: Fits) -> list[float]:
    """At each update that was looked at: the mean over ranks of the weight of all targets, without the factor; where every
    loss is known."""
    of_ranks = [{window.step: window for window in windows(log)} for log in run.ranks]
    found = []
    for look, _ in whole:
        parts = [list(of_rank[look.step].parts) for of_rank in of_ranks if look.step in of_rank]
        if len(parts) == run.world_size and all(part.kind for of_rank in parts for part in of_rank):
            found.append(sum(part.share for of_rank in parts for part in of_rank[-look.passes :]) / len(parts))
    return found


def _summed(run: Run, whole: Fits, factor: float, weights: list[float], evidence: dict[str, Quantity]) -> Verdict | None:
    """Means that were added up over the ranks."""
    ranks = run.world_size
    if not _is(factor, ranks):
        return None
    where = _where(run)
    if not weights:
        return _answer("inconclusive", "gradients-summed-and-loss-not-known", evidence, ranks=ranks)
    passes = whole[-1][0].passes
    total = factor * statistics.median(weights)
    if _is(total, ranks) or (passes > 1 and _is(total, ranks * passes)):
        return _answer("found", "gradients-summed", evidence, where=where, ranks=ranks)
    return None


def _divided_again(
    run: Run, whole: Fits, factor: float, weights: list[float], evidence: dict[str, Quantity]
) -> Verdict | None:
    """A mean over the ranks that was divided by their number once more."""
    ranks, where = run.world_size, _where(run)
    total = factor * statistics.median(weights) if weights else 0.0
    passes = whole[-1][0].passes
    if _is(total, 1.0) or not (_is(total, 1 / ranks) or (passes > 1 and _is(total, passes / ranks))):
        return None
    if _is(factor, 1 / ranks):
        return _answer("found", "gradients-divided-twice", evidence, where=where, ranks=ranks)
    last = _last_windows(run, whole)
    kinds = {part.kind for window in last for part in window.parts}
    site = last[0].parts[-1].site if last else 0
    if kinds == {SUM}:
        return _of_global_count(run, whole, evidence, where)
    divisors = divided_by(run, site)
    if not kinds <= {MEAN, SEVERAL} or not any(_is(number, ranks) for number in divisors):
        return None
    source = divided_in_source(run, site)
    if any(RANKS_IN_SOURCE.search(text) for text in source) and not any(text.isdigit() for text in source):
        return _answer("found", "loss-divided-by-the-ranks", evidence, where=where, ranks=ranks)
    return None


def _last_windows(run: Run, whole: Fits) -> list[Window]:
    """Each rank's update that was looked at last."""
    step = whole[-1][0].step
    return [window for log in run.ranks for window in windows(log) if window.step == step]


def _of_global_count(run: Run, whole: Fits, evidence: dict[str, Quantity], where: str | None) -> Verdict | None:
    """Sums that are divided by the targets of all ranks together, and then averaged over the ranks."""
    counts: list[tuple[int, ...]] = []
    for look, _ in whole:
        of_ranks = [w for log in run.ranks for w in windows(log) if w.step == look.step]
        targets = [sum(part.targets for part in window.parts) for window in of_ranks]
        together = sum(targets)
        for part in (part for window in of_ranks for part in window.parts):
            if not part.targets or not _is(part.share / part.targets * together, 1.0):
                return None
        counts.append(tuple(targets))
    exchanged = any(step.counts.get("script_collectives", 0) for log in run.ranks for step in log.steps)
    if not exchanged or not any(len(set(targets)) > 1 for targets in counts):
        return _answer("inconclusive", "sums-look-divided-twice", evidence, ranks=run.world_size)
    return _answer("found", "global-count-averaged-again", evidence, where=where, ranks=run.world_size)


def _where(run: Run) -> str | None:
    return next((where_of(run, part.site) for w in windows(run.ranks[0])[:1] for part in w.parts[-1:]), None)
