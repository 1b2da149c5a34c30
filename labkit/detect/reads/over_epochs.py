"""One verdict over all epochs: each is judged for itself, and this says what they amount to together.

What is found in any epoch is found. Else what one cannot tell, none can deny. Else the run is clear; at its edges there may
be an epoch of which too little was seen to judge it, as a run that stops or goes on from a checkpoint leaves one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from ...record.quantity import Quantity
from ...record.schema import Run
from ..catalogue import Said, said
from ..verdict import Verdict
from .measures import Reads, every_epoch


class TooShort(Verdict):
    """Inconclusive on one epoch for one reason alone: too little of it was seen. Nothing in it is suspicious."""


@dataclass(frozen=True, eq=False)
class Judged:
    """An epoch, or a part of one, and what it says for itself."""

    seen: Reads
    verdict: Verdict


def too_short(verdict: Verdict) -> Verdict:
    """Mark an inconclusive verdict as one that a longer look at the same epoch could have made clear."""
    return TooShort(**_plain(verdict))


def judge_each(run: Run, judge: Callable[[Reads], Verdict]) -> list[Judged]:
    """Judge each epoch of a run, the training's.

    An epoch of several loaders is judged as a whole first. What is not clear then is judged loader by loader: two passes
    over the same data, or over data whose ids both begin at 0, are no overlap of ranks.
    """
    found = []
    for epoch in every_epoch(run):
        whole = None if epoch.parts[0].stretch else Judged(epoch.whole, judge(epoch.whole))
        if whole is not None and (len(epoch.parts) == 1 or whole.verdict.status == "clear"):
            found.append(whole)
        else:
            found += [Judged(part, judge(part)) for part in epoch.parts]
    return _without_borders(found)


def over_epochs(judged: Sequence[Judged]) -> Verdict:
    """The verdict on a run, out of those on its epochs."""
    found = [one for one in judged if one.verdict.status == "found"]
    if found:
        return _found(judged, found)
    open_ = [one for one in judged if one.verdict.status == "inconclusive" and not isinstance(one.verdict, TooShort)]
    clear = [one for one in judged if one.verdict.status == "clear"]
    inner = [one for one in judged[1:-1] if isinstance(one.verdict, TooShort)]
    if open_ or inner or not clear:
        one = (open_ or inner or judged)[0]
        return _with(one.verdict, _where_of(judged, open_ or inner) if clear else (), {})
    unseen = [one.seen.label for one in judged if one not in clear]
    note = (said("part-cut-short" if len(unseen) == 1 else "parts-cut-short", parts=unseen),) if unseen else ()
    evidence = {"epochs_judged": Quantity(len(clear), f"of {len(judged)}")} if len(judged) > 1 else {}
    return _with(clear[0].verdict, note, evidence)


def _found(judged: Sequence[Judged], found: Sequence[Judged]) -> Verdict:
    first = found[0]
    waste = None if first.verdict.waste is None else _waste(judged, found)
    if len(judged) == 1:
        return first.verdict
    evidence = {
        "begins_in_epoch": Quantity(first.seen.epoch),
        "epochs_with_the_fault": Quantity(len(found), f"of {len(judged)}"),
    }
    if first.seen.part is not None:
        evidence["begins_in_part"] = Quantity(first.seen.part)
    told = _with(first.verdict, _where_of(judged, found), evidence)
    return Verdict(**{**_plain(told), "waste": waste})


def _waste(judged: Sequence[Judged], found: Sequence[Judged]) -> float:
    """Of the whole run: each epoch counts by its reads, and one without the fault wastes nothing."""
    wastes = {one.verdict.waste or 0.0 for one in found}
    total = sum(one.seen.total for one in judged)
    if len(wastes) == 1:  # exactly this share, where all epochs are alike
        return wastes.pop() * (sum(one.seen.total for one in found) / total)
    return sum((one.verdict.waste or 0.0) * one.seen.total for one in found) / total


def _where_of(judged: Sequence[Judged], these: Sequence[Judged]) -> tuple[Said, ...]:
    """In which epochs something holds, as the end of a sentence."""
    if not these or len(judged) == 1:
        return ()
    parts = _parts(judged)
    if len(these) == len(judged):
        return (said(f"in-all-{parts}", parts=len(judged)),)
    first = these[0]
    last_in_a_row = judged[judged.index(first) :]
    begins = "from" if len(last_in_a_row) == len(these) > 1 else "first-in"
    return (said(f"{begins}-{parts}", first=first.seen.label, found=len(these), parts=len(judged)),)


def _parts(judged: Sequence[Judged]) -> str:
    if judged[0].seen.stretch:
        return "stretches"
    return "passes" if any(one.seen.part is not None for one in judged) else "epochs"


def _without_borders(judged: list[Judged]) -> list[Judged]:
    """Of the stretches of an endless epoch, one in a few holds the border between two passes: alone it says nothing."""
    if not judged or not judged[0].seen.stretch:
        return judged

    def bad(at: int) -> bool:
        verdict = judged[at].verdict if 0 <= at < len(judged) else None
        return verdict is not None and verdict.status != "clear" and not isinstance(verdict, TooShort)

    return [one for at, one in enumerate(judged) if not bad(at) or bad(at - 1) or bad(at + 1)] or judged


def _with(verdict: Verdict, more: tuple[Said, ...], evidence: dict[str, Quantity]) -> Verdict:
    """The verdict as a plain one, with an ending to its cause and more evidence."""
    told = _plain(verdict)
    return Verdict(**{**told, "notes": verdict.notes + more, "evidence": {**verdict.evidence, **evidence}})


def _plain(verdict: Verdict) -> dict:
    return {field.name: getattr(verdict, field.name) for field in fields(verdict)}
