"""Are models in training mode when they are trained, and only then?

Dropout and BatchNorm do other things in training than in evaluation. A model that is evaluated without eval() gives random
answers, and its BatchNorm learns from the evaluation data; one that is left in eval() trains on without either. Fine-tuning
in evaluation mode from the start on, BatchNorm frozen so, is common and right.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record
from ..runs import looked_at
from ..verdict import Verdict, answering

NAME = "train-mode"
QUESTION = "Is each model in training mode when it is trained, and only then?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

ENOUGH = 5
"""Updates in a row, at the end of a run, that say that a model stays in evaluation mode."""

SHARE = 0.2
"""Of all updates, for the same."""

OFTEN = 1.5
"""Calls a batch from which on a model is called several times on purpose, for what dropout makes of it."""


def detect(record: Record) -> Verdict:
    """Judge rank 0, and what other ranks evaluate."""
    run = record.run
    log = run.ranks[0]
    if run.fact("watched_by") != "doctor":
        return _answer("not_applicable", "modes-not-watched")
    if not any(event.name == "minds_mode" for event in log.events):
        return _answer("clear", "no-module-minds-its-mode")
    updates = [step for step in looked_at(log.steps) if step.counts.get("updates")]
    in_eval = [bool(step.counts.get("updates_in_eval_mode")) for step in updates]
    last = next((at for at, each in enumerate(reversed(in_eval)) if not each), len(in_eval))
    looks = [event.fields for log in run.ranks for event in log.events if event.name == "evaluated_over"]
    wrong = [f for f in looks if int(f["in_train_mode"]) > 1 and not int(f["in_eval_mode"])]
    evidence = {
        "updates": Quantity(len(updates)),
        "updates_in_evaluation_mode": Quantity(sum(in_eval), "after some in training mode"),
        "evaluations": Quantity(len(looks), "passes over data, on all ranks together"),
        "evaluations_in_training_mode": Quantity(len(wrong), "of them"),
    }
    sure = [f for f in wrong if not f["trains_too"] and int(f["in_train_mode"]) <= OFTEN * int(f["batches"])]
    if sure:
        batches, where = int(sure[0]["batches"]), str(sure[0]["where"]) or None
        return _answer("found", "evaluated-in-training-mode", evidence, where=where, batches=batches)
    if last >= ENOUGH and last >= SHARE * len(updates):
        where = str(run.fact("loop_where", "")) or None
        return _answer("found", "stays-in-evaluation-mode", evidence, where=where, share=last / len(updates))
    if wrong:
        return _answer("inconclusive", "perhaps-evaluated-in-training-mode", evidence, batches=int(wrong[0]["batches"]))
    return _answer("clear", "modes-as-they-should-be", evidence)
