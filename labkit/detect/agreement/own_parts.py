"""Whether a part beside the wrapped model seems to be each rank's own on purpose: a head for its own data. Pure.

Weights that begin equal and drift apart look the same whether somebody forgot to wrap them or means each rank to keep its
own. What tells the two apart is what else the script does with ranks: it saves a file for each, feeds them data of other
classes, or says so in its source.
"""

from __future__ import annotations

from ...record.once import once
from ...record.schema import RankLog, Run

SAMPLES, EACH = 20, 4
"""Samples that a rank must have read, and how many of a class in the mean, before classes are compared."""


def own_parts(run: Run) -> bool:
    """Whether the ranks of a script seem to keep parts of their own on purpose."""
    return once(run, "own_parts", lambda: _said(run) or _own_files(run) or _own_classes(run))


def _said(run: Run) -> bool:
    return any(e.name == "source_read" and e.fields.get("own_parts") for e in run.ranks[0].events)


def _own_files(run: Run) -> bool:
    """Whether every rank saves to files of its own, and none together."""
    paths = [{str(e.fields.get("path", "")) for e in log.events if e.name == "torch_save"} - {""} for log in run.ranks]
    return run.world_size > 1 and all(paths) and not set.intersection(*paths)


def _own_classes(run: Run) -> bool:
    """Whether ranks read samples of different classes, and of none in common."""
    of_ranks = [_classes(log) for log in run.ranks]
    if run.world_size < 2 or not all(of_ranks):
        return False
    return sum(map(len, of_ranks)) == len(set.union(*of_ranks))


def _classes(log: RankLog) -> set[int]:
    """The labels that a rank read; empty where they are too many, or too few were read, to be classes."""
    labels = [label for step in log.steps for label in step.digests.get("targets", ())]
    found = set(labels)
    return found if len(labels) >= max(SAMPLES, EACH * len(found)) else set()
