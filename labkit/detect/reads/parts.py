"""Whether ranks hold parts of one model, and so are to read the same. Pure; no torch, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...record.schema import Run


def holds_parts(run: Run) -> bool:
    """Whether a model of some rank is another than the rank before has, or holds other weights from its first update on
    while ranks exchange something in their forward passes: stages of a pipeline, or tensors that are cut by hand."""
    looks = [_first_looks(run, rank) for rank in range(run.world_size)]
    if not all(looks):
        return False
    shapes = [[look["shape"] for look in of_rank.values()] for of_rank in looks]
    if any(of_rank != shapes[0] for of_rank in shapes):
        return True
    weights = [[look.get("weights") for look in of_rank.values()] for of_rank in looks]
    exchanged = any(step.counts.get("exchanged_in_forward") for log in run.ranks for step in log.steps)
    return exchanged and any(of_rank != weights[0] for of_rank in weights)


def _first_looks(run: Run, rank: int) -> dict[Any, Mapping[str, Any]]:
    """By model: the first look at what a rank holds of it."""
    found: dict[Any, Mapping[str, Any]] = {}
    for event in run.ranks[rank].events:
        if event.name == "replica":
            found.setdefault(event.fields["model"], event.fields)
    return found
