"""Is the validation data trained on?

A split that is seeded by rank gives each rank its own validation set; what one holds out, another trains on.
"""

from __future__ import annotations

import numpy as np

from ..record.measures import Quantity, dataset_size, epochs, reads
from ..record.measures_leak import Leak, held_out, validation_leak
from ..record.schema import Record, Run
from .explanations import MEETINGS, unless_contents_change
from .verdict import Verdict, answering, either

NAME = "validation-leak"
QUESTION = "Is validation data trained on?"
_answer = answering(NAME, QUESTION)

SEED = "split once, with a seed that is the same on every rank: torch.Generator().manual_seed(seed), not seed + rank"
INDICES = (
    "look at how the two parts are made: a rank trains on what it holds out itself, so their indices overlap; "
    "assert not set(train_indices) & set(validation_indices)"
)


def detect(record: Record) -> Verdict:
    """Compare what all ranks validated on with what all ranks trained on, in the run under study."""
    return unless_contents_change(_judge(record.run), record.run)


def _judge(run: Run) -> Verdict:
    leak = validation_leak(run)
    if leak is None:
        return _answer(
            "not_applicable",
            cause="the program recorded no validation samples",
            fix=either(
                lab="hold some data out (--set val_share=0.2) and record it with probe.seen('validation', epoch, batch)",
                script="record what you validate on with probe.seen('validation', epoch, batch)",
            ),
        )
    evidence = {
        "val_leak": Quantity(leak.share, "of the validation samples"),
        "leaked_samples": Quantity(leak.leaked, "samples"),
        "validation_samples": Quantity(leak.validation, "samples, over all ranks"),
        "told_apart_by": Quantity(leak.key),
    }
    if leak.leaked == 0:
        whole = any(reads(run, epoch).complete for epoch in epochs(run))
        if not whole:
            return _answer(
                "inconclusive",
                evidence,
                cause="no validation sample was trained on, but the run ended before the epoch did",
                fix="run a whole epoch (no cap on the steps)",
            )
        return _answer("clear", evidence, cause="no validation sample is trained on by any rank")
    if leak.key == "digest" and _copies_in_data(run, leak):
        return _answer(
            "inconclusive",
            evidence,
            cause="validation samples equal training samples, but no more than copies in the data set may explain",
            fix="record the samples' ids too, with ids_at= or probe.samples(name, batch, ids), and the ids decide",
        )
    return _answer(
        "found",
        evidence,
        cause=f"{leak.leaked:,} of {leak.validation:,} validation samples are trained on by some rank: "
        "the validation score is not one",
        fix=INDICES if leak.own * 2 * run.world_size >= leak.leaked else SEED,
        where=str(run.fact("split_where", "")) or None,
    )


def _copies_in_data(run: Run, leak: Leak) -> bool:
    """Whether equal samples in the data could be the leak: a pair falls into both sets, or both times into one.

    With V samples held out and T trained on, a sample with a copy is trained on 2T/V times for each pair within V. A pass
    may be recorded batch by batch, and made several times an epoch: then every sample comes that often.
    """
    pairs, different = 0, 1
    for log in run.ranks:
        for epoch in {seen.epoch for seen in held_out(log)}:
            read = [digest for seen in held_out(log) if seen.epoch == epoch for digest in seen.digests]
            times = np.unique(np.array(read, np.uint64), return_counts=True)[1]
            if len(times):
                pairs = max(pairs, int((times // int(np.median(times)) - 1).clip(0).sum()))
                different = max(different, len(times))
    trained = dataset_size(run) or reads(run, epochs(run)[0], "digest").total
    return leak.leaked <= 2 * trained / different * (2 * pairs + MEETINGS)
