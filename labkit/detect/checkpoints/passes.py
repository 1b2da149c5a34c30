"""What one rank read in each pass over its data, so that what was read before a save and after a load can be compared."""

from __future__ import annotations

from dataclasses import dataclass

from ...record.schema import RankLog, Step


@dataclass(frozen=True)
class Part:
    """A pass, or the part of one that was seen: samples in the order in which they were read.

    Attributes:
        first, last: steps of the record.
        whole: whether it was seen from its begin to its end.
    """

    reads: tuple[int, ...]
    first: int
    last: int
    whole: bool


def keys(step: Step) -> list[int]:
    """What tells a step's samples apart: ids where the data have them, else hashes."""
    return list(step.ids.get("train") or step.digests.get("train", []))


def ends(log: RankLog) -> list[int]:
    """Steps with which a pass over the training's data ended."""
    return [event.step for event in log.events if event.name == "epoch_end" and event.fields.get("of", "train") == "train"]


def parts(log: RankLog, resumed_at: int) -> list[Part]:
    """The passes of a rank. One that goes on at a resume is a part of its own.

    Args:
        resumed_at: the step with which training went on after a load.
    """
    cuts = set(ends(log))
    found: list[Part] = []
    reads: list[int] = []
    first, begun = 0, True
    for step in log.steps:
        if step.step == resumed_at and reads:
            found.append(Part(tuple(reads), first, step.step - 1, False))
            reads, begun = [], False
        if not reads:
            first = step.step
        begun = begun and step.step != resumed_at
        reads += keys(step)
        if step.step in cuts:
            found.append(Part(tuple(reads), first, step.step, begun))
            reads, begun = [], True
    if reads:
        found.append(Part(tuple(reads), first, log.steps[-1].step, False))
    return found


def surplus(log: RankLog, resumed_at: int) -> int:
    """Samples of the first step after a resume that are more than those of other steps: read, and not trained on."""
    sizes = [len(keys(step)) for step in log.steps if step.step > resumed_at] or [
        len(keys(step)) for step in log.steps if step.step < resumed_at
    ]
    first = next((len(keys(step)) for step in log.steps if step.step == resumed_at), 0)
    return max(0, first - max(sizes, default=first))
