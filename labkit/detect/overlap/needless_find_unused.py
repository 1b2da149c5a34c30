"""Does DDP look for unused parameters although all are used?

Looking costs a walk through the graph in each forward pass and one more all-reduce in each step. It is needed where a step
may leave parameters out. Too few passes cannot show that none ever will; leaving the setting out wrongly is loud, an error.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record
from ...words import plural
from ..verdict import Verdict, answering
from .measures import ddp_fact

NAME = "needless-find-unused"
QUESTION = "Does DDP look for unused parameters although all are used?"
_answer = answering(NAME, QUESTION)

ENOUGH = 8
"""Backward passes, of all ranks together, that must have used every parameter."""


def detect(record: Record) -> Verdict:
    """Judge all passes of all ranks of the run under study."""
    run = record.run
    looks = ddp_fact(run.ranks[0], "ddp_find_unused")
    if looks is None:
        return _answer("not_applicable", cause="no DDP module was watched", fix="watch it with watch_ddp(ddp, probe)")
    if not looks:
        return _answer("clear", cause="find_unused_parameters is not set")
    if ddp_fact(run.ranks[0], "ddp_static_graph"):
        return _answer("clear", cause="with static_graph DDP looks in the first step only")
    passes = [count for log in run.ranks for step in log.steps for count in step.series.get("unused_params", [])]
    watched = plural(len(passes), "pass", "passes")
    evidence = {
        "passes": Quantity(len(passes), "backward passes on all ranks"),
        "passes_with_unused": Quantity(sum(count > 0 for count in passes), "passes"),
    }
    if any(passes):
        names = sorted({str(e.fields["names"]) for log in run.ranks for e in log.events if e.name == "unused_parameters"})
        return _answer(
            "clear",
            evidence | {"unused": Quantity("; ".join(names)[:200] or "not named")},
            cause=f"parameters are unused in {sum(count > 0 for count in passes)} of {watched}: it is needed",
        )
    if len(passes) < ENOUGH:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"every parameter was used in {watched}; a later one might still leave some out",
            fix=f"watch {ENOUGH} passes or more",
        )
    return _answer(
        "found",
        evidence,
        cause=f"find_unused_parameters is set, and in {watched} every parameter was used: each step walks "
        "the graph and reduces a list of what was used, for nothing",
        fix="leave find_unused_parameters out; should a later step skip a layer after all, DDP says so with an error",
        where=str(run.fact("wrap_where", "")) or None,
    )
