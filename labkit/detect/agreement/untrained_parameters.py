"""Are all parameters that learn in the hands of an optimizer, and reduced by DDP?

An optimizer keeps the tensors that it was given. Tensors that take their place later (a new head, `.to()` of a copy, a
wrapper that shards) are not among them: they get gradients, and nobody applies these. DDP likewise reduces what could be
trained when it wrapped the model: what is unfrozen later has a gradient of this rank alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..verdict import Verdict, answering

NAME = "untrained-parameters"
QUESTION = "Does every parameter with a gradient reach an optimizer, and all ranks?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

ENOUGH_LOOKS = 2
"""Looks in a row that must agree: a first update may be a special one."""

IDLE_UNTIL, MOST_OF = 8, 0.5
"""Updates after which weights must still have had no gradient, and share of all that they must be: a small part that is
computed and not used, as a pooler is, harms nobody."""

ALMOST_ALL = 0.999
"""Where no gradient reaches the optimizer at all, something else is wrong."""


@dataclass(frozen=True)
class Look:
    """What one rank saw of one model's parameters after an update; counts are tensors."""

    update: int
    trainable: int
    without_gradient: int
    unheld: int
    unheld_names: str
    unfrozen: int
    unfrozen_names: str
    foreign: int
    later: int
    later_names: str


def looks(run: Run) -> dict[int, list[Look]]:
    """Rank 0's looks, by model; every rank runs the same script."""
    found: dict[int, list[Look]] = {}
    for event in run.ranks[0].events:
        if event.name == "parameters":
            fields = event.fields
            found.setdefault(int(fields["model"]), []).append(
                Look(
                    int(fields["update"]),
                    int(fields["trainable"]),
                    int(fields["without_gradient"]),
                    int(fields["unheld"]),
                    str(fields["unheld_names"]),
                    int(fields["unfrozen"]),
                    str(fields["unfrozen_names"]),
                    int(fields["foreign"]),
                    int(fields.get("later", 0)),
                    str(fields.get("later_names", "")),
                )
            )
    return found


def detect(record: Record) -> Verdict:
    """Look at each model in turn; the first with a fault is told."""
    run = record.run
    by_model = looks(run)
    if not by_model:
        return _answer("not_applicable", "no-parameters-looked-at")
    verdicts = [_of_model(run, of_model) for of_model in by_model.values()]
    for status in ("found", "inconclusive"):
        for verdict in verdicts:
            if verdict.status == status:
                return verdict
    return verdicts[0]


def _of_model(run: Run, of_model: list[Look]) -> Verdict:
    last = of_model[-1]
    evidence = {
        "looks": Quantity(len(of_model), "after updates"),
        "trainable": Quantity(last.trainable, "tensors"),
        "held_by_none": Quantity(last.unheld, "tensors with a gradient"),
        "foreign": Quantity(last.foreign, "tensors that optimizers hold, of no model"),
    }
    where = str(run.fact("optimizer_where", "")) or None
    late = [look for look in of_model if look.unfrozen]
    if late and run.world_size > 1:
        begins = Quantity(late[0].update, "updates were made when it was first seen")
        return _answer(
            "found", "unfrozen-after-ddp", evidence | {"unfrozen": begins}, where=where, names=late[0].unfrozen_names
        )
    lacking = [look for look in of_model if look.unheld]
    if len(lacking) < ENOUGH_LOOKS:
        return _of_idle(run, evidence) or _answer("clear", "every-gradient-is-applied", evidence)
    if last.unheld and last.foreign:
        return _answer(
            "found", "optimizer-holds-others", evidence, where=where, names=last.unheld_names, foreign=last.foreign
        )
    if last.later and last.unheld < last.trainable and len([look for look in lacking if look.later]) >= ENOUGH_LOOKS:
        return _answer("found", "made-after-the-optimizer", evidence, where=where, names=last.later_names)
    if last.unheld == last.trainable:
        return _answer("found", "model-has-no-optimizer", evidence, where=where, tensors=last.trainable)
    return _answer("inconclusive", "some-have-no-optimizer", evidence, names=last.unheld_names)


def _of_idle(run: Run, evidence: dict[str, Quantity]) -> Verdict | None:
    """Whether most of what the optimizers hold is computed in each pass, and gets no gradient."""
    seen = [event.fields for event in run.ranks[0].events if event.name == "idle_weights"]
    last_update = sum(step.counts.get("updates", 0) for step in run.ranks[0].steps)
    if len(seen) < ENOUGH_LOOKS:
        return None
    *_, idle = seen
    looked = int(idle["update"])
    if looked < IDLE_UNTIL or 2 * looked <= last_update:
        return None
    share = float(idle["share"])
    evidence = evidence | {
        "without_gradient": Quantity(int(idle["tensors"]), "tensors"),
        "idle": Quantity(share, "of what optimizers hold"),
    }
    numbers = {"names": str(idle["names"]), "tensors": int(idle["tensors"]), "share": share}
    where = str(run.fact("optimizer_where", "")) or None
    if share < MOST_OF or share > ALMOST_ALL:  # where none gets one, `empty-updates` asks why
        return None
    if not idle["training"]:
        return _answer("inconclusive", "held-and-kept-as-it-is", evidence, **numbers)
    return _answer("found", "no-gradient-reaches", evidence, where=where, **numbers)
