"""Which worker of a loader gave which samples: whether all of them go through the same stream. Pure; no torch, no I/O."""

from __future__ import annotations

import numpy as np

from ...record.columns import DIGEST, as_array
from ...record.schema import RankLog, Run
from ..explanations import ENOUGH


def same_streams(run: Run) -> tuple[int, int] | None:
    """(a rank, how many workers) whose workers each gave the same samples, in whichever order; None where none did."""
    for log in run.ranks:
        workers = _same(log)
        if workers:
            return log.head.rank, workers
    return None


def _same(log: RankLog) -> int:
    """How many workers there are, where in every epoch all of them gave the same samples, the last few left out."""
    found = 0
    for streams in _streams(log).values():
        of_workers = [np.concatenate(batches) for batches in streams.values()]
        least = min(map(len, of_workers))
        if len(of_workers) < 2 or least < ENOUGH:
            continue
        first = of_workers[0][:least]
        if len(np.unique(first)) < ENOUGH or not all(_alike(first, other, least) for other in of_workers[1:]):
            return 0
        found = max(found, len(of_workers))
    return found


def _alike(one: np.ndarray, other: np.ndarray, least: int) -> bool:
    """Whether one order, or two orders of the same samples."""
    return bool((one == other[:least]).all()) or (len(one) == len(other) and bool((np.sort(one) == np.sort(other)).all()))


def _streams(log: RankLog) -> dict[int, dict[int, list[np.ndarray]]]:
    """By epoch, by worker: what it gave, batch by batch."""
    found: dict[int, dict[int, list[np.ndarray]]] = {}
    for step in log.steps:
        workers, rows = step.series.get("batch_worker", []), step.series.get("batch_rows", [])
        digests = as_array(step.digests.get("train", []), DIGEST)
        if not workers or sum(rows) != len(digests):
            continue
        starts = np.cumsum([0, *rows])
        for at, worker in enumerate(workers):
            found.setdefault(step.epoch, {}).setdefault(worker, []).append(digests[starts[at] : starts[at + 1]])
    return found
