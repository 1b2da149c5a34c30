"""Does DDP look for unused parameters although all are used?

Looking costs a walk through the graph in each forward pass and one more all-reduce in each step. It is needed where a step
may leave parameters out. Too few passes cannot show that none ever will; leaving the setting out wrongly is loud, an error.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..verdict import Verdict, answering
from .measures import ddp_fact

NAME = "needless-find-unused"
QUESTION = "Does DDP look for unused parameters although all are used?"
_answer = answering(NAME, QUESTION)

ENOUGH = 8
"""Backward passes, of all ranks together, that must have used every parameter."""

DEFAULTS = {"transformers": "ddp_find_unused_parameters=False in TrainingArguments"}
"""Libraries that look for unused parameters unless they are told not to, and how they are told."""


def detect(record: Record) -> Verdict:
    """Judge all passes of all ranks of the run under study."""
    run = record.run
    looks = ddp_fact(run.ranks[0], "ddp_find_unused")
    if looks is None:
        return _answer("not_applicable", "no-ddp-module-watched")
    if not looks:
        return _answer("clear", "find-unused-not-set")
    if ddp_fact(run.ranks[0], "ddp_static_graph"):
        return _answer("clear", "static-graph-looks-once")
    passes = [count for log in run.ranks for step in log.steps for count in step.series.get("unused_params", [])]
    unused = sum(count > 0 for count in passes)
    evidence = {
        "passes": Quantity(len(passes), "backward passes on all ranks"),
        "passes_with_unused": Quantity(unused, "passes"),
    }
    if any(passes):
        evidence["unused"] = Quantity(_names(run) or "not named")
        return _answer("clear", "some-parameters-are-unused", evidence, unused=unused, passes=len(passes))
    if len(passes) < ENOUGH:
        return _answer("inconclusive", "too-few-passes", evidence, passes=len(passes), enough=ENOUGH)
    where = str(run.fact("wrap_where", "")) or None
    made_by = str(run.fact("ddp_made_by", "")).split(", ")
    setting = next((DEFAULTS[name] for name in made_by if name in DEFAULTS), None)
    if setting is not None:
        return _answer("inconclusive", "library-looks-for-unused", evidence, passes=len(passes), setting=setting)
    return _answer("found", "every-parameter-is-used", evidence, where=where, passes=len(passes))


def _names(run: Run) -> str:
    """The names of unused parameters, as far as they were noted."""
    noted = [event for log in run.ranks for event in log.events if event.name == "unused_parameters"]
    return "; ".join(sorted({str(event.fields["names"]) for event in noted}))[:200]
