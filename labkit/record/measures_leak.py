"""What of the validation data was trained on. Pure; no torch, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .schema import RankLog, Run, Seen


@dataclass(frozen=True)
class Leak:
    """Validation samples, and how many of them some rank trained on.

    Attributes:
        validation: different validation samples over all ranks.
        leaked: of these, trained on by any rank in any epoch.
        key: how samples are told apart.
        own: of the leaked, trained on by a rank that holds them out itself.
    """

    validation: int
    leaked: int
    key: Literal["id", "digest"]
    own: int = 0

    @property
    def share(self) -> float:
        return self.leaked / self.validation


def held_out(log: RankLog, name: str = "validation") -> list[Seen]:
    """What a rank validated on: as `probe.seen` wrote it down, and as `probe.batches` did under this name."""
    steps = [step for step in log.steps if name in step.digests]
    through_batches = [Seen(name, step.epoch, step.digests[name], step.ids.get(name, [])) for step in steps]
    return [*(seen for seen in log.seen if seen.name == name), *through_batches]


def validation_leak(run: Run, name: str = "validation", train_name: str = "train") -> Leak | None:
    """What of the validation data was trained on; None where no validation was recorded."""
    passes = [seen for log in run.ranks for seen in held_out(log, name)]
    steps = [s for log in run.ranks for s in log.steps if train_name in s.digests]
    if not passes or not steps:
        return None
    by_id = all(len(seen.ids) == len(seen.digests) for seen in passes) and all(train_name in s.ids for s in steps)
    validated = [{key for seen in held_out(log, name) for key in (seen.ids if by_id else seen.digests)} for log in run.ranks]
    trained = [{key for s in log.steps for key in (s.ids if by_id else s.digests).get(train_name, ())} for log in run.ranks]
    every, own = set().union(*validated), [held & read for held, read in zip(validated, trained, strict=True)]
    leaked = every & set().union(*trained)
    return Leak(len(every), len(leaked), "id" if by_id else "digest", len(set().union(*own)))
