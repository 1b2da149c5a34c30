"""What a survey repeated, out of its record: operations, messages over the link, launches. Pure; no torch, no I/O."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from ...record.roles import Role
from ...record.schema import Record, Run
from ...theory.ceilings import MIN_SIZES, LinkFit, Timing, fit_link, timing


@dataclass(frozen=True)
class Operation:
    """One thing that was repeated on one rank.

    Attributes:
        name: "matmul-fp32", "copy", "read-random" and the like.
        seconds: of each repeat.
        flops, num_bytes: of one.
        size: rows of a square product, 0 where there is none.
    """

    name: str
    seconds: np.ndarray
    flops: int
    num_bytes: int
    size: int

    @property
    def timing(self) -> Timing:
        return timing(self.seconds)

    @property
    def flops_per_s(self) -> float:
        """Of the best repeat."""
        return self.flops / self.timing.best_s

    @property
    def bytes_per_s(self) -> float:
        """Of the best repeat."""
        return self.num_bytes / self.timing.best_s


def operations(run: Run | None) -> dict[str, Operation]:
    """By name: what rank 0 of a run repeated, in the order in which it began. Empty without a run."""
    repeats: dict[str, list] = defaultdict(list)
    for step in run.ranks[0].steps if run is not None else ():
        if step.spans and "seconds" in step.scalars:
            repeats[step.spans[0].name].append(step)
    return {
        name: Operation(
            name,
            np.array([step.scalar("seconds") for step in steps]),
            steps[0].counts.get("flops", 0),
            steps[0].counts.get("bytes", 0),
            steps[0].counts.get("size", 0),
        )
        for name, steps in repeats.items()
    }


def link_repeats(run: Run) -> dict[int, np.ndarray]:
    """By message size in bytes: seconds of each repeat of the all-reduce, as the slowest rank had it."""
    logs = [[step for step in log.steps if "seconds" in step.scalars] for log in run.ranks]
    repeats: dict[int, list[float]] = defaultdict(list)
    for of_ranks in zip(*logs, strict=False):
        repeats[of_ranks[0].counts["bytes"]].append(max(step.scalar("seconds") for step in of_ranks))
    return {size: np.array(repeats[size]) for size in sorted(repeats)}


def link_fit(record: Record) -> LinkFit | None:
    """The line through the medians at each size; None where one rank ran, or too few sizes were measured."""
    run = record.runs.get(Role.LINK)
    repeats = link_repeats(run) if run is not None else {}
    if run is None or run.world_size < 2 or len(repeats) < MIN_SIZES:
        return None
    return fit_link(list(repeats), [timing(seconds).median_s for seconds in repeats.values()], run.world_size)


def launches(record: Record) -> list[float]:
    """Seconds of each launch of ranks that do nothing; empty where an outer launcher had started them."""
    runs = [run for role, run in record.runs.items() if Role.of(role) is Role.LAUNCH]
    return [run.wall_s for run in runs if run.fact("launched_here", False)]
