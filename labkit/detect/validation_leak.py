"""Is the validation data trained on?

A split that is seeded by rank gives each rank its own validation set; what one holds out, another trains on.
"""

from __future__ import annotations

from ..record.measures import Quantity, epochs, reads, validation_leak
from ..record.schema import Record
from .verdict import Verdict, answering

NAME = "validation-leak"
QUESTION = "Is validation data trained on?"
_answer = answering(NAME, QUESTION)

EQUAL_SAMPLES = 0.01


def detect(record: Record) -> Verdict:
    """Compare what all ranks validated on with what all ranks trained on, in the run under study."""
    run = record.run
    leak = validation_leak(run)
    if leak is None:
        return _answer(
            "not_applicable",
            cause="the program recorded no validation samples",
            fix="hold some data out (--set val_share=0.2) and record it with probe.seen('validation', epoch, batch)",
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
    if leak.key == "digest" and leak.share <= EQUAL_SAMPLES:
        return _answer(
            "inconclusive",
            evidence,
            cause="a few validation samples equal a training sample: copies in the data set do that too",
            fix="return the sample's id as the third item of a batch, and the ids decide",
        )
    return _answer(
        "found",
        evidence,
        cause=f"{leak.leaked:,} of {leak.validation:,} validation samples are trained on by some rank: "
        "the validation score is not one",
        fix="split once with a seed that is the same on every rank: torch.Generator().manual_seed(seed), never seed + rank",
        where=str(run.fact("split_where", "")) or None,
    )
