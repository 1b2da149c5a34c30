"""Is the validation data trained on?

A split that is seeded by rank gives each rank its own validation set; what one holds out, another trains on.
"""

from __future__ import annotations

import numpy as np

from ...record.columns import DIGEST, as_array
from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ...words import plural
from ..explanations import MEETINGS, unless_contents_change
from ..verdict import Verdict, answering, either
from .batches import counted
from .leak import Leak, held_out, validation_leak
from .measures import dataset_size, every_epoch

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
        whole = any(epoch.whole.complete for epoch in every_epoch(run))
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
    if leak.key == "id" and leak.same_content == 0 and leak.leaked == leak.validation:
        return _answer(
            "inconclusive",
            evidence,
            cause="every validation sample has the id of a training sample, and none its content: two data sets may each "
            "count ids from 0, or the content changes each time (augmentation)",
            fix="give each sample of all the data an id of its own, or leave the ids of the validation out",
        )
    spoilt, scored = leak.epochs
    if not spoilt and scored > 1:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"{leak.leaked:,} of {plural(leak.validation, 'validation sample')} are trained on, but only after the "
            "last validation that holds them: a last training on all data does that, and the scores before it stand",
            fix="if that is not what you do, look at what is split off in the last epochs",
        )
    if spoilt:
        evidence |= {
            "begins_in_epoch": Quantity(leak.begins or 0),
            "epochs_with_the_fault": Quantity(spoilt, f"of {scored} with a validation"),
        }
    begins = f" from epoch {leak.begins} on" if leak.begins and scored > 1 else ""
    return _answer(
        "found",
        evidence,
        cause=f"{leak.leaked:,} of {leak.validation:,} validation samples are trained on by some rank: "
        f"the validation score is not one{begins}",
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
        of_epochs: dict[int, list[np.ndarray]] = {}
        for seen in held_out(log):
            of_epochs.setdefault(seen.epoch, []).append(as_array(seen.digests, DIGEST))
        for read in of_epochs.values():
            times = counted(np.concatenate(read))[1]
            if len(times):
                pairs = max(pairs, int((times // int(np.median(times)) - 1).clip(0).sum()))
                different = max(different, len(times))
    first = next(epoch.whole for epoch in every_epoch(run) if epoch.whole.total)
    trained = dataset_size(run) or first.total
    return leak.leaked <= 2 * trained / different * (2 * pairs + MEETINGS)
