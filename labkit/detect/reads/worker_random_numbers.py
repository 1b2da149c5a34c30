"""Do the workers of a loader draw random numbers of their own?

A generator that the data set keeps is copied into each worker as it is forked off: all draw the same numbers, and in the
next epoch, forked off anew, the same again. Augmentations and noise then repeat across a batch, and nothing shows it.
Judged by the state of each generator in each worker, before and after its first batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...record.quantity import Quantity
from ...record.schema import Record
from ..verdict import Verdict, answering

NAME = "worker-random-numbers"
QUESTION = "Do a loader's workers draw random numbers of their own?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

TORCHS = ("numpy", "random", "torch")
"""Generators that torch seeds in each worker."""


def detect(record: Record) -> Verdict:
    """Judge each loader's workers on each rank, whenever they were started."""
    run = record.run
    drawn = [[event.fields for event in log.events if event.name == "worker_random"] for log in run.ranks]
    maps = [[fields for fields in of_rank if not fields["stream"]] for of_rank in drawn]
    if not any(maps):
        return _answer("not_applicable", "no-worker-draws")
    where = str(run.fact("loader_where", "")) or None
    for of_rank in maps:
        alike = _alike(of_rank)
        if alike is not None:
            name, workers, of = alike
            reason = "workers-seeded-alike" if name in TORCHS else "workers-share-a-generator"
            evidence = {"workers_that_draw_alike": Quantity(workers, f"of {of}"), "generator": Quantity(name)}
            return _answer("found", reason, evidence, where=where, name=name, workers=workers)
    for of_rank in maps:
        name = _again(of_rank)
        if name is not None:
            return _answer("inconclusive", "workers-draw-the-same-again", {"generator": Quantity(name)}, name=name)
    return _answer("clear", "workers-draw-their-own")


def _alike(drawn: Sequence[Mapping[str, Any]]) -> tuple[str, int, int] | None:
    """(generator, how many workers began with one state of it and drew from it, of how many); None where none did."""
    same = Counter((one["start"], str(one["generator"]), one["state"]) for one in drawn)
    for (start, name, _), workers in same.most_common(1):
        if workers > 1:
            of = next(int(one["of"]) for one in drawn if one["start"] == start)
            return name, workers, of
    return None


def _again(drawn: Sequence[Mapping[str, Any]]) -> str | None:
    """A generator with which a worker began in the state in which it had begun before, and drew from it."""
    same = Counter((one["worker"], str(one["generator"]), one["state"]) for one in drawn)
    return next((name for (_, name, _), times in same.items() if times > 1), None)
