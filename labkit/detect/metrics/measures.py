"""Evaluations of a run: how many samples each rank evaluated, and what the ranks reduced of it. Pure; no torch, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...record.schema import Run


@dataclass(frozen=True)
class Reduction:
    """One reduction that all ranks made within an evaluation.

    Attributes:
        values: by rank: what it gave; empty where that was more than numbers of a metric.
        rows: by rank: how many samples it had evaluated by then.
        averaged: whether the result is divided by the number of ranks.
        operation, where: of the call on the first rank.
        by_hand: whether the samples came from no loader.
    """

    values: tuple[tuple[float, ...], ...]
    rows: tuple[int, ...]
    averaged: bool
    operation: str
    where: str
    by_hand: bool = False


@dataclass(frozen=True)
class Evaluation:
    """A pass over data that were evaluated, and what was reduced until the next update.

    Attributes:
        rows: by rank: samples; None where a rank made no such pass.
        size: samples of the data set; 0 where it cannot tell.
        seconds: by rank, of those that made it.
        updates: made before it.
        reductions: in order.
    """

    rows: tuple[int | None, ...]
    size: int
    seconds: tuple[float, ...]
    updates: int
    reductions: list[Reduction] = field(default_factory=list)

    @property
    def everywhere(self) -> tuple[int, ...]:
        """By rank: samples, of an evaluation that all ranks made; else empty."""
        known = tuple(rows for rows in self.rows if rows is not None)
        return known if len(known) == len(self.rows) else ()


def evaluations(run: Run) -> list[Evaluation]:
    """All of them, in the order of the first rank that made each."""
    passes: dict[tuple[Any, Any], dict[int, Mapping[str, Any]]] = {}
    for rank, log in enumerate(run.ranks):
        for event in log.events:
            if event.name == "evaluation_pass":
                passes.setdefault((event.fields["loader"], event.fields["number"]), {})[rank] = event.fields
    reductions = _reductions(run)
    found = []
    for of_pass in passes.values():
        first = of_pass[min(of_pass)]
        updates = int(first["updates"])
        found.append(
            Evaluation(
                rows=tuple(int(of_pass[rank]["rows"]) if rank in of_pass else None for rank in range(run.world_size)),
                size=int(first["size"]),
                seconds=tuple(float(of_pass[rank]["seconds"]) for rank in sorted(of_pass)),
                updates=updates,
                reductions=reductions.get(updates, []),
            )
        )
    by_loaders = {one.updates for one in found}
    return found + [_by_hand(updates, of) for updates, of in reductions.items() if updates not in by_loaders and of]


def _by_hand(updates: int, reductions: list[Reduction]) -> Evaluation:
    """An evaluation of samples that came from no loader, known by what is reduced of it."""
    return Evaluation(rows=reductions[-1].rows, size=0, seconds=(), updates=updates, reductions=reductions)


def _reductions(run: Run) -> dict[int, list[Reduction]]:
    """By the number of updates before: what all ranks reduced, the same calls in the same order on each."""
    of_ranks: list[dict[int, list[Mapping[str, Any]]]] = []
    for log in run.ranks:
        mine: dict[int, list[Mapping[str, Any]]] = {}
        for event in log.events:
            if event.name == "reduced":
                mine.setdefault(int(event.fields["updates"]), []).append(event.fields)
        of_ranks.append(mine)
    found: dict[int, list[Reduction]] = {}
    for updates, calls in of_ranks[0].items():
        others = [of_rank.get(updates, []) for of_rank in of_ranks]
        if any([one["where"] for one in other] != [one["where"] for one in calls] for other in others):
            continue
        found[updates] = [
            Reduction(
                values=tuple(tuple(map(float, str(one["values"]).split())) for one in same),
                rows=tuple(int(one["rows"]) for one in same),
                averaged=bool(same[0]["averaged"]),
                operation=str(same[0]["op"] or same[0]["operation"]),
                where=str(same[0]["where"]),
                by_hand=bool(same[0].get("by_hand")),
            )
            for same in zip(*others, strict=True)
        ]
    return found
