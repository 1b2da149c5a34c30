"""Whether each rank trains a model of its own on purpose: an ensemble, or a search over settings. Pure.

Nothing wraps the model, ranks exchange hardly anything while they train, and they differ from the start, by their weights or
by their optimizers' settings. Where a sampler shares the data out one model is meant all the same.
"""

from __future__ import annotations

from ...record.once import once
from ...record.schema import RankLog, Run
from ..reads.epochs import every_epoch
from .measures import held, made

FEW = 64
"""Numbers that a step exchanges at most for what it prints: a loss, a count of right answers."""

SELDOM = 0.05
"""Share of the steps in which ranks may exchange more, as ensembles do that average what they foretell."""

SHARED_OUT = 1.2
"""Ranks that read a sample, in the mean, below which the data are shared out."""


def own_models(run: Run) -> bool:
    """Whether each rank of a script that the doctor watched seems to train a model of its own on purpose."""
    return once(run, "own_models", lambda: _own_models(run))


def _own_models(run: Run) -> bool:
    if run.fact("watched_by") != "doctor" or run.world_size < 2 or not run.fact("group_size"):
        return False
    if run.fact("ddp_world_size") is not None or any(map(_talks, run.ranks)):
        return False
    return _begin_apart(run) and not _shared_out(run)


def _talks(log: RankLog) -> bool:
    """Whether a rank exchanges more than a few numbers while it trains."""
    if any(step.counts.get("reductions", 0) or step.counts.get("exchanged_in_forward", 0) for step in log.steps):
        return True
    known = any("exchanged_elements" in step.counts for step in log.steps)
    talking = [
        step.counts.get("exchanged_elements", 0) > FEW if known else step.counts.get("script_collectives", 0) > 0
        for step in log.steps
    ]
    return sum(talking) > max(1.0, SELDOM * len(talking))


def _begin_apart(run: Run) -> bool:
    """Whether ranks have different weights before the first update, or different settings from the first."""
    looked = held(run)
    if any(not one.whole for one in looked):
        return False
    starts = [one for one in looked if one.start]
    if starts and all(not one.comparable or one.apart for one in starts):
        return True
    return own_settings(run)


def own_settings(run: Run) -> bool:
    """Whether ranks train with settings of their own, as a search does: other learning rates, another momentum."""
    if len({_first_rate(log) for log in run.ranks}) > 1:
        return True
    updates = made(run)
    return bool(updates) and all(not one.alike("settings") for one in updates)


def _first_rate(log: RankLog) -> float | None:
    return next((step.scalar("lr_used") for step in log.steps if "lr_used" in step.scalars), None)


def _shared_out(run: Run) -> bool:
    read = [epoch.whole for epoch in every_epoch(run)]
    return any(seen.total and float(seen.ranks_reading.mean()) < SHARED_OUT for seen in read)
