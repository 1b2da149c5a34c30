"""What modules were given to train on, on each rank: by it ranks are known to do the same work where no loader is seen, or
to take their parts of what all have read. Pure; no torch, no I/O."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...record.columns import Samples, samples_of
from ...record.quantity import Quantity
from ...record.schema import Run
from ..explanations import COINCIDENCE, ENOUGH
from .batches import Batches, counted, distinct, equal_steps, together
from .epochs import model_parallel_groups

STEPS = 5
"""Steps of which something is known before anything is said."""

SAME, MEET = 0.9, 0.5
"""Share of the steps, and of the rows of a first pass, that must be the same on all ranks."""

ROWS = 32
"""Rows of a first pass before it is known to be one."""

ALL = 0.9
"""Share of the different rows that ranks are given once before any comes again, which ranks with a part each come to. Ranks
that go through all rows for themselves meet long before."""

NEAR = 0.1


def is_split_by_hand(run: Run) -> bool:
    """Whether each rank gives its module a part of what it reads, and not the part of another rank."""
    of_ranks = _of_ranks(run)
    shares = [_share(run, rank) for rank in range(run.world_size)]
    if of_ranks is None or None in shares:
        return False
    part = float(np.mean([share for share in shares if share is not None]))
    return abs(part * run.world_size - 1) < NEAR and _identical(of_ranks) < 1 - SAME


def _share(run: Run, rank: int) -> float | None:
    """Of the elements that a rank reads in a step, how many its module is given."""
    steps = [step.counts for step in run.ranks[rank].steps if step.counts.get("fed_elements")]
    read = sum(counts.get("read_elements", 0) for counts in steps)
    return sum(counts["fed_elements"] for counts in steps) / read if read else None


def judged(run: Run) -> tuple[str, str, dict[str, Quantity]] | None:
    """(status, reason, evidence) by what modules were given alone; None where too little is known."""
    of_ranks = _of_ranks(run)
    if of_ranks is None:
        return None
    identical, rows = _identical(of_ranks), np.concatenate([of_rank.keys for of_rank in of_ranks])
    different = counted(rows)
    evidence = {
        "steps": Quantity(min(map(len, of_ranks))),
        "identical_steps": Quantity(identical, "of the steps"),
        "different_rows": Quantity(len(different[0]), f"of {len(rows)}"),
    }
    if len(different[0]) < ENOUGH:
        return "inconclusive", "too-few-different-rows", evidence
    if identical >= SAME:
        if _one_batch(of_ranks[0]):
            return "inconclusive", "one-batch-on-all-ranks", evidence
        chance = len(of_ranks[0].keys) * -np.log(float(((different[1] / len(rows)) ** 2).sum()))
        return ("found", "ranks-fed-the-same", evidence) if chance > COINCIDENCE else None
    once = _once_before_any_again(of_ranks) / len(different[0])
    if once >= ALL:
        return ("clear", "ranks-fed-apart", evidence) if once == 1.0 else None
    meeting = _meeting(of_ranks)
    if meeting is not None and meeting >= MEET:
        evidence["of_a_first_pass"] = Quantity(meeting, "given to several ranks")
        return "found", "ranks-fed-the-same-rows", evidence
    return None


def _of_ranks(run: Run) -> list[Batches] | None:
    """By share of the data, by step: hashes of the rows; None where one has too few steps, or there is no other.

    Of ranks that hold one model together the first stands for all: see `model_parallel_groups`.
    """
    logs = [share[0] for share in model_parallel_groups(run)]
    every = [samples_of([step for step in log.steps if "fed" in step.digests], "fed") for log in logs]
    if len(every) < 2 or min(map(len, every)) < STEPS:
        return None
    return [_batches(samples) for samples in every]


def _batches(samples: Samples) -> Batches:
    return Batches(samples.digests, samples.starts)


def _identical(of_ranks: Sequence[Batches]) -> float:
    first, *others = of_ranks
    steps = min(map(len, of_ranks))
    same = np.ones(steps, bool)
    for other in others:
        same &= equal_steps(first, other)[:steps]
    return float(same.mean())


def _one_batch(batches: Batches) -> bool:
    """Whether a rank was given one and the same batch all along."""
    return len({batch.tobytes() for batch in batches}) == 1


def _once_before_any_again(of_ranks: Sequence[Batches]) -> int:
    """How many rows all ranks are given, step by step, before one comes again, to whichever rank."""
    steps = min(map(len, of_ranks))
    return _before_one_again(together([batches[:steps] for batches in of_ranks], of_ranks[0].keys.dtype).keys)


def _meeting(of_ranks: Sequence[Batches]) -> float | None:
    """Of the rows of a rank before any rank is given one again, the share that others were given too; None where these
    are few. The passes of all ranks end at one step: what comes later may be the next epoch's, dealt out anew."""
    steps = min(int(np.searchsorted(of_rank.starts, _before_one_again(of_rank.keys), "right")) - 1 for of_rank in of_ranks)
    passes = [of_rank[:steps].keys for of_rank in of_ranks]
    if min(map(len, passes)) < ROWS:
        return None
    rows, ranks = counted(np.concatenate([distinct(rows) for rows in passes]))
    several = rows[ranks > 1]
    return float(np.mean([np.isin(own, several).mean() for own in passes]))


def _before_one_again(rows: np.ndarray) -> int:
    """How many rows there are before the first one that comes again."""
    _, first = np.unique(rows, return_index=True)
    again = np.ones(len(rows), bool)
    again[first] = False
    return int(again.argmax()) if again.any() else len(rows)
