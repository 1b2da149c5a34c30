"""Do ranks begin with different weights, and does nobody make them equal?

DDP broadcasts the first rank's weights, so different seeds do no harm there. FSDP2 does not: each rank keeps its shard of
its own weights, and the model that trains is put together from as many initialisations as there are ranks.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..verdict import Verdict, answering
from .measures import Wrapped, wrapped

NAME = "unequal-init"
QUESTION = "Is the model put together from different initial weights?"
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Judge the hashes of the initial weights, before and after wrapping, in the run under study."""
    run = record.run
    calls = wrapped(run)
    if calls:
        return _of_calls(run, calls)
    before = [log.digests.get("initial_weights") for log in run.ranks]
    after = [log.digests.get("wrapped_weights") for log in run.ranks]
    if run.world_size < 2 or None in before:
        return _answer("not_applicable", "initial-weights-not-recorded")
    different = len(set(before))
    evidence = {"initial_weights": Quantity(different, f"different ones on {run.ranks_said}")}
    if different == 1:
        return _answer("clear", "ranks-begin-with-equal-weights", evidence)
    if None in after:
        return _answer("inconclusive", "wrapped-weights-not-recorded", evidence, different=different)
    evidence["wrapped_weights_are_a_ranks_own"] = Quantity(after[0] in before)
    if len(set(after)) == 1 and after[0] in before:
        return _answer("clear", "wrapping-made-weights-equal", evidence, different=different)
    where = str(run.fact("wrap_where", "")) or None
    return _answer("found", "shards-of-different-weights", evidence, where=where, different=different)


def _of_calls(run: Run, calls: list[Wrapped]) -> Verdict:
    """Judge what each rank gave to the wrapper, and whether the parts are still as they were as training begins."""
    evidence = {"wrapped": Quantity(len(calls), "modules that were sharded, on each rank")}
    apart = [call for call in calls if len(set(call.weights)) > 1]
    if run.world_size < 2 or not apart:
        return _answer("clear", "ranks-begin-with-equal-weights", evidence)
    different = len(set(apart[0].weights))
    evidence["initial_weights"] = Quantity(different, f"different ones on {run.ranks_said}")
    if all(call.synced for call in apart):
        return _answer("clear", "wrapping-made-weights-equal", evidence, different=different)
    starts = [e.fields for log in run.ranks for e in log.events if e.name == "sharded_start" and int(e.fields["parts"])]
    if starts and all(fields["unchanged"] for fields in starts):
        return _answer("found", "shards-of-different-weights", evidence, where=apart[0].where or None, different=different)
    if not starts:
        return _answer("inconclusive", "wrapped-weights-not-recorded", evidence, different=different)
    return _answer("clear", "shards-were-written-afterwards", evidence, different=different)
