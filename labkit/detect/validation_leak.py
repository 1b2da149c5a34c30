"""Is the validation data trained on?

A split that is seeded by rank gives each rank its own validation set; what one holds out, another trains on.
"""

from __future__ import annotations

from ..record.measures import Leak, Quantity, dataset_size, epochs, reads, validation_leak
from ..record.schema import Record, Run
from .explanations import MEETINGS
from .verdict import Verdict, answering, either

NAME = "validation-leak"
QUESTION = "Is validation data trained on?"
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Compare what all ranks validated on with what all ranks trained on, in the run under study."""
    run = record.run
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
        fix="split once, with a seed that is the same on every rank: torch.Generator().manual_seed(seed), not seed + rank",
        where=str(run.fact("split_where", "")) or None,
    )


def _copies_in_data(run: Run, leak: Leak) -> bool:
    """Whether equal samples in the data could be the leak: a pair falls into both sets, or both times into one.

    With V samples held out and T trained on, a sample with a copy is trained on 2T/V times for each pair within V.
    """
    passes = [seen.digests for log in run.ranks for seen in log.seen if seen.name == "validation"]
    pairs = max(len(digests) - len(set(digests)) for digests in passes)
    held_out = max(len(digests) for digests in passes)
    trained = dataset_size(run) or reads(run, epochs(run)[0], "digest").total
    return leak.leaked <= 2 * trained / held_out * (2 * pairs + MEETINGS)
