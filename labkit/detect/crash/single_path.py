"""Do several ranks write different state to one path?

The file can be read, and it is one rank's: the others resume with what is not theirs.
"""

from __future__ import annotations

from collections import defaultdict

from ...record.quantity import Quantity
from ...record.schema import Record, Run
from ..verdict import Verdict, answering
from .measures import Save, attempts, of_step, saves

NAME = "single-path"
QUESTION = "Do several ranks write their own state to one path?"
_answer = answering(NAME, QUESTION)


def detect(record: Record) -> Verdict:
    """Compare what ranks wrote to one path for the same step."""
    run = record.run
    alone = [save for save in saves(run) if save.alone and save.path]
    if not saves(run):
        return _answer("not_applicable", "no-saves-to-compare")
    if run.world_size == 1:
        return _answer("not_applicable", "one-rank-shares-no-path")
    shared = {key: group for key, group in _by_path(alone).items() if len({save.rank for save in group}) > 1}
    if not shared:
        return _answer("clear", "no-path-shared")
    differing = {key: group for key, group in shared.items() if len({save.digest for save in group}) > 1}
    (path, _), group = next(iter((differing or shared).items()))
    writers = len({save.rank for save in group})
    evidence = {
        "writers": Quantity(writers, "ranks to one path"),
        "contents": Quantity(len({save.digest for save in group}), "different"),
        "saves": Quantity(len(shared), "of this kind"),
        "misled": Quantity(_misled(run), "ranks that read another's state"),
    }
    if not all(save.digest for save in group):
        return _answer("inconclusive", "contents-not-recorded", evidence, writers=writers, path=path)
    if not differing:
        return _answer("inconclusive", "equal-content-to-one-path", evidence, writers=writers)
    where = str(run.fact("keeper_where", "")) or None
    return _answer("found", "ranks-overwrite-each-other", evidence, where=where, writers=writers)


def _by_path(alone: list[Save]) -> dict[tuple[str, int], list[Save]]:
    groups: dict[tuple[str, int], list[Save]] = defaultdict(list)
    for save in alone:
        groups[save.path, save.of_step].append(save)
    return groups


def _misled(run: Run) -> int:
    """Ranks whose load gave something else than they saved for that step."""
    wrote = {(save.rank, save.of_step): save.digest for save in saves(run) if save.digest}
    loads = [(rank, event) for attempt in attempts(run) for rank, event in attempt.events("load")]
    return len(
        {
            rank
            for rank, event in loads
            if (rank, of_step(event)) in wrote and event.fields.get("digest") not in (None, wrote[rank, of_step(event)])
        }
    )
