"""Is the validation data trained on?

A split that is seeded by rank gives each rank its own validation set; what one holds out, another trains on.
"""

from __future__ import annotations

import numpy as np

from ...record.columns import DIGEST, as_array
from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..catalogue import said
from ..explanations import MEETINGS, unless_contents_change
from ..verdict import Verdict, answering
from .batches import counted
from .leak import Leak, held_out, validation_leak
from .measures import dataset_size, every_epoch

NAME = "validation-leak"
QUESTION = "Is validation data trained on?"
_answer = answering(NAME, QUESTION)

HELD_OUT = ("validation", "validation_2", "validation_3", "validation_4")
"""Names of the data sets that are validated on."""

NEARLY_ALL = 0.9
"""Share of what is trained on: who evaluates so much of it evaluates the training data, on purpose or not."""


def detect(record: Record) -> Verdict:
    """Compare what all ranks validated on with what all ranks trained on, in the run under study."""
    run = record.run
    verdicts = [unless_contents_change(_judge(run, name), run) for name in HELD_OUT]
    for status in ("found", "clear", "inconclusive"):
        for verdict in verdicts:
            if verdict.status == status:
                return verdict
    return verdicts[0]


def _judge(run: Run, name: str) -> Verdict:
    leak = validation_leak(run, name)
    if leak is None:
        return _answer("not_applicable", "no-validation-recorded")
    evidence = {
        "val_leak": Quantity(leak.share, "of the validation samples"),
        "leaked_samples": Quantity(leak.leaked, "samples"),
        "validation_samples": Quantity(leak.validation, "samples, over all ranks"),
        "told_apart_by": Quantity(leak.key),
    }
    if leak.leaked == 0:
        if not any(epoch.whole.complete for epoch in every_epoch(run)):
            return _answer("inconclusive", "validation-kept-apart-so-far", evidence)
        return _answer("clear", "validation-kept-apart", evidence)
    if run.fact("watched_by") == "doctor" and leak.leaked == leak.validation >= NEARLY_ALL * _trained(run):
        return _answer("inconclusive", "validation-is-the-training-data", evidence, validation=leak.validation)
    if leak.key == "digest" and _copies_in_data(run, leak, name):
        return _answer("inconclusive", "leak-or-copies", evidence)
    if leak.key == "id" and leak.same_content == 0 and leak.leaked == leak.validation:
        return _answer("inconclusive", "two-data-sets-may-share-ids", evidence)
    return _leaked(run, leak, evidence)


def _leaked(run: Run, leak: Leak, evidence: dict[str, Quantity]) -> Verdict:
    """Validation data that some rank trained on, and nothing that explains it."""
    (spoilt, scored), numbers = leak.epochs, {"leaked": leak.leaked, "validation": leak.validation}
    if not spoilt and scored > 1:
        return _answer("inconclusive", "trained-on-after-the-last-validation", evidence, **numbers)
    if spoilt:
        evidence |= {
            "begins_in_epoch": Quantity(leak.begins or 0),
            "epochs_with_the_fault": Quantity(spoilt, f"of {scored} with a validation"),
        }
    within_ranks = leak.own * 2 * run.world_size >= leak.leaked
    return _answer(
        "found",
        "split-overlaps" if within_ranks else "split-differs-by-rank",
        evidence,
        where=str(run.fact("split_where", "")) or None,
        notes=(said("from-epoch-on", epoch=leak.begins),) if leak.begins and scored > 1 else (),
        **numbers,
    )


def _trained(run: Run) -> int:
    """How many different samples are trained on in an epoch, the largest."""
    return max((epoch.whole.unique for epoch in every_epoch(run)), default=0)


def _copies_in_data(run: Run, leak: Leak, name: str) -> bool:
    """Whether equal samples in the data could be the leak: a pair falls into both sets, or both times into one.

    With V samples held out and T trained on, a sample with a copy is trained on 2T/V times for each pair within V. A pass
    may be recorded batch by batch, and made several times an epoch: then every sample comes that often.
    """
    pairs, different = 0, 1
    for log in run.ranks:
        of_epochs: dict[int, list[np.ndarray]] = {}
        for seen in held_out(log, name):
            of_epochs.setdefault(seen.epoch, []).append(as_array(seen.digests, DIGEST))
        for read in of_epochs.values():
            times = counted(np.concatenate(read))[1]
            if len(times):
                pairs = max(pairs, int((times // int(np.median(times)) - 1).clip(0).sum()))
                different = max(different, len(times))
    first = next(epoch.whole for epoch in every_epoch(run) if epoch.whole.total)
    trained = dataset_size(run) or first.total
    return leak.leaked <= 2 * trained / different * (2 * pairs + MEETINGS)
