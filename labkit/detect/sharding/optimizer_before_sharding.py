"""Does the optimizer hold parameters that the model no longer has?

FSDP2 puts new parameters in the place of the old ones. An optimizer made before keeps the old: it updates nobody's weights,
and keeps the whole old weights alive. Under DDP the order does not matter, for there the parameters stay the same objects.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..verdict import Verdict, answering

NAME = "optimizer-before-sharding"
QUESTION = "Does the optimizer hold parameters that the model does not have?"
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Judge what each rank noted of its optimizer, in the run under study."""
    run = record.run
    noted = [event.fields for log in run.ranks for event in log.events if event.name == "optimizer_knows"]
    if not noted:
        return _answer("not_applicable", "optimizers-parameters-not-noted")
    worst = max(noted, key=lambda fields: int(fields["orphans"]))
    known, total, orphans = (int(worst[name]) for name in ("known", "parameters", "orphans"))
    evidence = {
        "parameters_known": Quantity(known, f"of {total}"),
        "parameters_of_nobody": Quantity(orphans, "held by the optimizer alone"),
    }
    moved = _moved(run)
    if moved is not None:
        evidence["largest_move"] = Quantity(moved, "by which any weight changed")
    if not orphans:
        return _answer("clear", "optimizer-holds-the-models-parameters", evidence)
    if known and moved:
        return _answer("inconclusive", "optimizer-holds-others-but-weights-move", evidence, orphans=orphans)
    return _answer(
        "found",
        "optimizer-holds-what-nothing-uses",
        evidence,
        where=str(run.fact("wrap_where", "")) or None,
        waste=1.0 if not known else None,
        known=known,
        parameters=total,
        orphans=orphans,
    )


def _moved(run: Run) -> float | None:
    """By how much the most moved weight moved over the run, as far as it was noted."""
    moves = [float(e.fields["largest"]) for log in run.ranks for e in log.events if e.name == "weights_moved"]
    return max(moves) if moves else None
