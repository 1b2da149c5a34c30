"""Do ranks begin with different weights, and does nobody make them equal?

DDP broadcasts the first rank's weights, so different seeds do no harm there. FSDP2 does not: each rank keeps its shard of
its own weights, and the model that trains is put together from as many initialisations as there are ranks.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record
from ..verdict import Verdict, answering

NAME = "unequal-init"
QUESTION = "Is the model put together from different initial weights?"
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Judge the hashes of the initial weights, before and after wrapping, in the run under study."""
    run = record.run
    before = [log.digests.get("initial_weights") for log in run.ranks]
    after = [log.digests.get("wrapped_weights") for log in run.ranks]
    if run.world_size < 2 or None in before:
        return _answer(
            "not_applicable",
            cause="no hash of the initial weights was recorded on two ranks or more",
            fix="record digest('initial_weights', model.parameters()) on every rank, before the model is wrapped",
        )
    different = len(set(before))
    evidence = {"initial_weights": Quantity(different, f"different ones on {run.ranks_said}")}
    if different == 1:
        return _answer("clear", evidence, cause="all ranks begin with the same weights, to the bit")
    if None in after:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"ranks begin with {different} different sets of weights; whether wrapping made them equal is not known",
            fix="record digest('wrapped_weights', the whole weights) after wrapping too",
        )
    evidence["wrapped_weights_are_a_ranks_own"] = Quantity(after[0] in before)
    if len(set(after)) == 1 and after[0] in before:
        return _answer(
            "clear",
            evidence,
            cause=f"ranks begin with {different} different sets of weights, and wrapping made all equal to one",
        )
    return _answer(
        "found",
        evidence,
        cause=f"ranks began with {different} different sets of weights, and the model that trains is none of them: its "
        "shards come from different initialisations, whose statistics nobody chose",
        fix="seed all ranks alike before the model is built (and apart after it, for dropout), or broadcast the first "
        "rank's weights; fully_shard does not",
        where=str(run.fact("wrap_where", "")) or None,
    )
