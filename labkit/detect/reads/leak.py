"""What of the validation data was trained on, and from when on. Pure; no torch, no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ...record.schema import RankLog, Run, Seen

Key = Literal["id", "digest"]


@dataclass(frozen=True)
class Leak:
    """Validation samples, and how many of them some rank trained on.

    Attributes:
        validation: different validation samples over all ranks.
        leaked: of these, trained on by any rank in any epoch.
        key: how samples are told apart.
        own: of the leaked, trained on by a rank that holds them out itself.
        begins: the first epoch whose score a leak spoils: what it validates on was trained on by its end.
        epochs: of how many epochs with a validation the score is spoilt, and of how many there is one.
        same_content: of the leaked by id, the share that has the content it was trained with; 1 by contents.
    """

    validation: int
    leaked: int
    key: Key
    own: int = 0
    begins: int | None = None
    epochs: tuple[int, int] = (0, 0)
    same_content: float = 1.0

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
    passes = [held_out(log, name) for log in run.ranks]
    steps = [[step for step in log.steps if train_name in step.digests] for log in run.ranks]
    every_pass, every_step = [seen for own in passes for seen in own], [step for own in steps for step in own]
    if not every_pass or not every_step:
        return None
    by_id = all(len(seen.ids) == len(seen.digests) for seen in every_pass) and all(
        len(step.ids.get(train_name, ())) == len(step.digests[train_name]) for step in every_step
    )
    key: Key = "id" if by_id else "digest"
    validated = [{one for seen in own for one in (seen.ids if by_id else seen.digests)} for own in passes]
    trained = [{one for s in own for one in (s.ids if by_id else s.digests)[train_name]} for own in steps]
    every, leaked = set().union(*validated), set().union(*validated) & set().union(*trained)
    own_leaked = [held & read for held, read in zip(validated, trained, strict=True)]
    first = _first_trained((s.epoch, (s.ids if by_id else s.digests)[train_name]) for s in every_step)
    scored = {seen.epoch for seen in every_pass}
    spoilt = sorted(
        {
            seen.epoch
            for seen in every_pass
            if any(first.get(one, seen.epoch + 1) <= seen.epoch for one in (seen.ids if by_id else seen.digests))
        }
    )
    return Leak(
        len(every),
        len(leaked),
        key,
        len(set().union(*own_leaked)),
        spoilt[0] if spoilt else None,
        (len(spoilt), len(scored)),
        _same_content(every_pass, ((s.ids[train_name], s.digests[train_name]) for s in every_step), leaked)
        if by_id
        else 1.0,
    )


def _first_trained(read: Iterable[tuple[int, list[int]]]) -> dict[int, int]:
    """By sample: the first epoch in which any rank trained on it."""
    first: dict[int, int] = {}
    for epoch, keys in sorted(read, key=lambda one: one[0]):
        for key in keys:
            first.setdefault(key, epoch)
    return first


def _same_content(passes: Iterable[Seen], trained: Iterable[tuple[list[int], list[int]]], leaked: set[int]) -> float:
    """Of the leaked ids, the share under which validation and training saw one content at least once."""
    held = {(one, what) for seen in passes for one, what in zip(seen.ids, seen.digests, strict=True) if one in leaked}
    same = {one for ids, digests in trained for one, what in zip(ids, digests, strict=True) if (one, what) in held}
    return len(same) / len(leaked) if leaked else 1.0
