"""Do all ranks hold the same weights?

Ranks that train one model together begin with the same weights and end each update with the same ones, to the bit: every one
applies the same gradient. What differs before the first update never becomes equal; what differs later drifted.

Weights that differ are not always wrong. Parts of a model (tensor or pipeline parallelism, experts) have collectives of
their own, and averaging weights now and then (local SGD) makes them equal again. So it is found only where nothing that
ranks exchange could ever make them equal, or where the gradients are the same on all ranks, or DDP reduced them, and the
weights differ all the same.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..verdict import Verdict, answering
from .differences import Difference, explained, without_updates
from .measures import Held, held, listed, made
from .own_models import own_settings
from .own_parts import own_parts

NAME = "replicas-differ"
QUESTION = "Do all ranks hold the same weights?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

ROUNDING = 1e-6
"""Gap, as a share of the weights, that the order of a sum explains."""


def detect(record: Record) -> Verdict:
    """Compare the ranks' weights before the first update, and after each that was looked at."""
    run = record.run
    if run.world_size == 1:
        return _answer("not_applicable", "one-rank-holds-one-model")
    if run.fact("group_size") == 0 and all(any(step.counts.get("updates") for step in log.steps) for log in run.ranks):
        where = str(run.fact("loop_where", "")) or None
        waste = 1 - 1 / run.world_size
        if own_settings(run):
            return _answer("inconclusive", "runs-of-their-own", ranks=run.world_size)
        return _answer("found", "ranks-never-joined", where=where, waste=waste, ranks=run.world_size)
    looked = held(run)
    if not looked:
        return _answer("not_applicable", "no-weights-compared")
    types = _types_apart(looked)
    if types is not None:
        return _answer("found", "types-differ-between-ranks", where=_place(run))
    idle = without_updates(run)
    if idle:
        where = _place(run)
        return _answer("found", "ranks-never-update", where=where, ranks=idle)
    compared = [one for one in looked if one.comparable and one.apart is not None]
    if not compared:
        return _answer("not_applicable", "ranks-hold-parts")
    differ = [one for one in compared if one.apart]
    evidence = {
        "compared": Quantity(len(compared), "times, before and after updates"),
        "differ": Quantity(len(differ), "of them"),
    }
    if differ:
        return _of_models(run, compared, evidence)
    return _of_loose(run, evidence)


def _of_models(run: Run, compared: list[Held], evidence: dict[str, Quantity]) -> Verdict:
    """The first model of which something is found; else the first that differs."""
    verdicts = []
    for model in dict.fromkeys(one.model for one in compared):
        of_model = [one for one in compared if one.model == model]
        if any(one.apart for one in of_model):
            verdicts.append(_of_model(run, Difference(run, of_model, compared), evidence))
    found = [verdict for verdict in verdicts if verdict.status == "found"]
    unsure = [verdict for verdict in verdicts if verdict.status == "inconclusive"]
    return (found or unsure or verdicts)[0]


def _of_model(run: Run, difference: Difference, evidence: dict[str, Quantity]) -> Verdict:
    first = difference.first
    evidence = evidence | {"first_update": Quantity(first.update)}
    if difference.only_at_start:
        return _answer("clear", "weights-equal", evidence)
    if difference.meets_again:
        return _answer("inconclusive", "weights-meet-again", evidence, update=first.update)
    if max(one.gap for one in difference.looks) < ROUNDING:
        return _answer("inconclusive", "weights-differ-by-rounding", evidence, update=first.update)
    status, reason = explained(difference)
    place = _PLACES[reason]
    where = str(run.fact("optimizer_where", "") if place == "optimizer_where" else run.fact("loop_where", "")) or None
    waste = 1 - 1 / run.world_size if reason in ("ddp-bypassed", "nothing-is-reduced") else None
    return _answer(
        status,
        reason,
        evidence,
        where=where if status == "found" else None,
        waste=waste,
        update=first.update,
        ranks=run.world_size,
        names=difference.names or "its parameters",
        settings=difference.settings,
    )


_PLACES = {
    "ranks-start-apart": "loop_where",
    "changed-after-the-wrap": "loop_where",
    "model-outside-the-wrapper": "loop_where",
    "parameters-outside-the-wrapper": "loop_where",
    "some-gradients-not-reduced": "loop_where",
    "settings-differ-between-ranks": "optimizer_where",
    "updates-differ-between-ranks": "loop_where",
    "state-differs-between-ranks": "loop_where",
    "gradients-changed-after-ddp": "loop_where",
    "some-weights-drift-under-ddp": "loop_where",
    "weights-drift-under-ddp": "loop_where",
    "weights-drift-with-equal-gradients": "loop_where",
    "part-kept-by-each-rank": "",
    "weights-differ-and-ranks-talk": "",
    "weights-differ-by-choice": "",
    "ranks-train-models-of-their-own": "",
    "ddp-bypassed": "loop_where",
    "nothing-is-reduced": "loop_where",
}
"""What `explained` may say, and the fact that names the line to look at."""


def _of_loose(run: Run, evidence: dict[str, Quantity]) -> Verdict:
    """All models are equal: so are the tensors of no model, that an optimizer trains too?"""
    looks = made(run)
    apart = [one for one in looks if one.loose_apart]
    if len(apart) < 2 or looks[-1] is not apart[-1]:
        return _answer("clear", "weights-equal", evidence)
    where = str(run.fact("optimizer_where", "")) or None
    tensors = listed([f"tensor {at} of the optimizer" for at in apart[-1].loose_apart])
    evidence = evidence | {"tensors_apart": Quantity(len(apart[-1].loose_apart), "of no model, that an optimizer trains")}
    if own_parts(run):
        return _answer("inconclusive", "part-kept-by-each-rank", evidence, names=tensors, update=apart[0].update)
    return _answer("found", "loose-tensors-drift", evidence, where=where, names=tensors, update=apart[0].update)


def _types_apart(looked: list[Held]) -> int | None:
    """The first model whose tensors have the same names and shapes on all ranks, and not the same types; None without."""
    for one in looked:
        names = {fields.get("names") for fields in one.of_rank}
        types = {fields.get("types") for fields in one.of_rank}
        if None not in names and len(names) == 1 and len(types) > 1:
            return one.model
    return None


def _place(run: Run) -> str | None:
    return str(run.fact("loop_where", "")) or None
