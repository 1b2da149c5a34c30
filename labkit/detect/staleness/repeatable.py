"""Does the same program, with the same settings and seed, give the same weights again?

Judged by runs of one program: the one under study, and those in roles that begin with "repeat". Equal weights are equal
to the bit, by their hashes (`probe.digest("weights", …)` at the end). Where versions were recorded, the order in which the
ranks' gradients were applied says why weights differ.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record
from ..verdict import Verdict, answering, either
from .measures import arrival_repeats, pushes, repeats_of, weights_repeat

NAME = "repeatable"
QUESTION = "Does the same run give the same weights again?"
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Compare the run under study with its repeats."""
    count = len(repeats_of(record))
    if count < 2:
        return _answer(
            "not_applicable",
            cause="the run was made once",
            fix=either(
                lab="run it again in the role repeat (--set repeats=1)",
                script="run it again, and compare what probe.digest('weights', model.parameters()) returns at the end",
            ),
        )
    equal, same_order = weights_repeat(record), arrival_repeats(record)
    if equal is None:
        return _answer(
            "not_applicable",
            cause="the final weights were not recorded in every run",
            fix='record them at the end, with probe.digest("weights", model.parameters())',
        )
    evidence = {"runs": Quantity(count), "weights_equal": Quantity(equal)}
    if same_order is not None:
        evidence["same_order_of_gradients"] = Quantity(same_order)
    of_run = pushes(record.run)
    apart = of_run is not None and of_run.one_by_one and len(of_run.workers) > 1
    if equal:
        return _answer("clear", evidence, cause=f"{count} runs gave the same weights, to the bit")
    if apart and same_order is False:
        return _answer(
            "found",
            evidence,
            cause=f"{count} runs with one seed gave different weights: gradients were applied in the order in which they "
            "came, and that depends on the speed of each rank in each moment",
            fix="serve ranks in a fixed order, or step synchronously; or keep the order of arrival with the run, so that it "
            "can be played back",
            where=str(record.run.fact("loop_where", "")) or None,
        )
    return _answer(
        "found",
        evidence,
        cause=f"{count} runs with one seed gave different weights, although ranks' gradients came in no other order",
        fix="seed whatever is random on each rank, and use deterministic kernels (torch.use_deterministic_algorithms)",
        where=str(record.run.fact("loop_where", "")) or None,
    )
