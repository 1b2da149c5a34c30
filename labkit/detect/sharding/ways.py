"""What one step gave to collectives and held, by the way in which it was made; and a table of it. Pure; no torch."""

from __future__ import annotations

from dataclasses import dataclass

from ...record.schema import Record, Run
from ...record.table import Table
from ...theory.accumulation import StepBytes, step_bytes

BYTES_OF = {"float32": 4, "bfloat16": 2, "float16": 2, "float64": 8}


@dataclass(frozen=True)
class Counted:
    """One way, as the first rank counted it, in bytes a parameter.

    Attributes:
        strategy, micro_batches, last_alone, gathered_as, reduced_as: the way.
        seen: what was counted; `sent_units` in (W-1)/W bytes a parameter.
        by_formula: the same from theory.
    """

    strategy: str
    micro_batches: int
    last_alone: bool
    gathered_as: str
    reduced_as: str
    seen: StepBytes
    by_formula: StepBytes


def ways(run: Run) -> list[Counted]:
    """The ways that a run counted, in its order; empty for another run."""
    events = [event.fields for event in run.ranks[0].events if event.name == "way_of_a_step"]
    params, ranks = float(run.fact("num_parameters", 0)), run.world_size  # pyright: ignore[reportArgumentType]
    found = []
    for fields in events if params else []:
        gathered_as, reduced_as = str(fields["gathered_as"]), str(fields["reduced_as"])
        how = {"micro_batches": int(fields["micro_batches"]), "last_alone": bool(fields["last_alone"])}
        formula = step_bytes(
            str(fields["strategy"]),
            ranks,
            gather_bytes=BYTES_OF[gathered_as],
            reduce_bytes=BYTES_OF[reduced_as],
            **how,
        )
        around = (ranks - 1) / ranks or 1.0
        seen = StepBytes(
            gathered=float(fields["gathered_bytes"]) / params,
            reduced=float(fields["reduced_bytes"]) / params,
            sent_units=float(fields["sent_bytes"]) / params / around,
            gradients=float(fields["between_bytes"]) / params,
        )
        found.append(
            Counted(str(fields["strategy"]), how["micro_batches"], how["last_alone"], gathered_as, reduced_as, seen, formula)
        )
    return found


def ways_table(record: Record) -> Table | None:
    """One row a way; None for a record that counted none."""
    counted = ways(record.run)
    if not counted:
        return None
    rows = []
    for way in counted:
        seen, formula = way.seen, way.by_formula
        rows.append(
            (
                way.strategy,
                str(way.micro_batches),
                "the last" if way.last_alone else "each",
                f"{way.gathered_as}, {way.reduced_as}",
                f"{seen.gathered:.2f}",
                f"{seen.reduced:.2f}",
                f"{seen.sent_units:.2f}",
                f"{formula.sent_units:.0f}",
                f"{seen.gradients:.2f}" if way.micro_batches > 1 else "–",
                f"{formula.gradients:.2f}" if way.micro_batches > 1 else "–",
            )
        )
    columns = (
        "strategy", "micro-batches", "reduced in", "gathered as, reduced as", "gathered", "reduced", "sent", "by formula",
        "held between", "by formula",
    )  # fmt: skip
    notes = (
        "gathered, reduced: whole weights and gradients given to collectives in a step, in bytes a parameter. sent: what a "
        "rank sends of them by ring algorithms, in units of (W-1)/W bytes a parameter.",
        "held between: gradients that a rank holds between two micro-batches, in bytes a parameter.",
        record.provenance.label(),
    )
    return Table("One step, by how it is made", columns, tuple(rows), notes, left=(0, 2, 3))
