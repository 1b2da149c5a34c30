"""Does each epoch come in a new order?

Judged by the order that was observed, not by whether set_epoch was called somewhere: a wrapped sampler may never hear.
"""

from __future__ import annotations

import numpy as np

from ..record.measures import Quantity, epochs, reads, same_order
from ..record.schema import Record
from ..words import plural
from .explanations import ENOUGH
from .verdict import Verdict, answering

NAME = "order"
QUESTION = "Does each epoch come in a new order?"
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Compare the first two epochs of the run under study, on every rank."""
    run = record.run
    found = epochs(run)
    if len(found) < 2:
        return _answer(
            "not_applicable",
            cause=f"the run has {plural(len(found), 'epoch')} with samples",
            fix="run 2 epochs or more, without a cap on the steps",
        )
    first, second = reads(run, found[0]), reads(run, found[1])
    shares = same_order(first, second)
    repeating = [
        len(np.unique(a[: len(b)])) for a, b, share in zip(first.of_rank, second.of_rank, shares, strict=True) if share == 1
    ]
    evidence = {
        "positions_with_the_same_sample": Quantity(float(shares.mean()), "of all, mean over ranks"),
        "ranks_that_repeat": Quantity(int((shares == 1).sum()), f"of {first.world_size}"),
        "told_apart_by": Quantity(first.key),
    }
    if not repeating:
        return _answer("clear", evidence, cause="the second epoch comes in another order than the first")
    if max(repeating) < ENOUGH:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"the order is the same, but a rank has only {max(repeating)} different samples to compare",
            fix="run two whole epochs of more data",
        )
    # but for the last, which may be the sampler's padding
    ascending = first.key == "id" and all((np.diff(keys[:-1]) > 0).all() for keys in first.of_rank)
    return _answer(
        "found",
        evidence,
        cause="the loader does not shuffle: samples come in the order in which they are stored"
        if ascending
        else "the second epoch repeats the first one's order exactly: the sampler never hears which epoch it is",
        fix="call sampler.set_epoch(epoch) at the start of each epoch, on the object that draws the permutation",
        where=str(run.fact("loader_where", "")) or None,
    )
