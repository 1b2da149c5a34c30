"""Does the same program, with the same settings and seed, give the same weights again?

Judged by runs of one program: the one under study, and those in roles that begin with "repeat". Equal weights are equal
to the bit, by their hashes (`probe.digest("weights", …)` at the end). Where versions were recorded, the order in which the
ranks' gradients were applied says why weights differ.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record
from ..verdict import Verdict, answering
from .measures import arrival_repeats, pushes, repeats_of, weights_repeat

NAME = "repeatable"
QUESTION = "Does the same run give the same weights again?"
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Compare the run under study with its repeats."""
    count = len(repeats_of(record))
    if count < 2:
        return _answer("not_applicable", "run-was-made-once")
    equal, same_order = weights_repeat(record), arrival_repeats(record)
    if equal is None:
        return _answer("not_applicable", "weights-not-in-every-run")
    evidence = {"runs": Quantity(count), "weights_equal": Quantity(equal)}
    if same_order is not None:
        evidence["same_order_of_gradients"] = Quantity(same_order)
    if equal:
        return _answer("clear", "weights-repeat", evidence, runs=count)
    of_run, where = pushes(record.run), str(record.run.fact("loop_where", "")) or None
    if same_order:
        return _answer("found", "weights-differ-in-one-order", evidence, where=where, runs=count)
    if same_order is False and of_run is not None and of_run.one_by_one and len(of_run.workers) > 1:
        return _answer("found", "weights-depend-on-the-order-of-arrival", evidence, where=where, runs=count)
    return _answer("found", "weights-differ", evidence, where=where, runs=count)
