"""Does the optimizer hold parameters that the model no longer has?

FSDP2 puts new parameters in the place of the old ones. An optimizer made before keeps the old: it updates nobody's weights,
and keeps the whole old weights alive. Under DDP the order does not matter, for there the parameters stay the same objects.
"""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ...words import plural
from ..verdict import Verdict, answering

NAME = "optimizer-before-sharding"
QUESTION = "Does the optimizer hold parameters that the model does not have?"
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Judge what each rank noted of its optimizer, in the run under study."""
    run = record.run
    noted = [event.fields for log in run.ranks for event in log.events if event.name == "optimizer_knows"]
    if not noted:
        return _answer(
            "not_applicable",
            cause="nothing was noted of which parameters the optimizer holds",
            fix="note an event optimizer_knows with known, parameters and orphans, once both are made",
        )
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
        return _answer("clear", evidence, cause="all that the optimizer holds are parameters of the model")
    if known and moved:
        return _answer(
            "inconclusive",
            evidence,
            cause=f"the optimizer holds {plural(orphans, 'parameter')} that the model does not have, and weights move all "
            "the same: another part of the model may be frozen or gone on purpose",
            fix="make the optimizer from model.parameters() of the finished model, and look again",
        )
    return _answer(
        "found",
        evidence,
        cause=f"the optimizer knows {known} of the model's {plural(total, 'parameter')} and holds {orphans} that nothing "
        "uses: its steps change nothing that the model computes with, and the old whole weights stay in memory",
        fix="make the optimizer after fully_shard, from the sharded model's parameters()",
        where=str(run.fact("wrap_where", "")) or None,
        waste=1.0 if not known else None,
    )


def _moved(run: Run) -> float | None:
    """By how much the most moved weight moved over the run, as far as it was noted."""
    moves = [float(e.fields["largest"]) for log in run.ranks for e in log.events if e.name == "weights_moved"]
    return max(moves) if moves else None
