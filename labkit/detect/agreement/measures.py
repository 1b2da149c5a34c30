"""What ranks held before and after updates, out of a record. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...record.schema import RankLog, Run

UNREAD, NOTHING = "-", "0"
"""Tokens of what could not be read, and of what was not there."""

NAMED = 5
"""Tensors that are named at most."""


@dataclass(frozen=True)
class Held:
    """One model after one update, on all ranks.

    Attributes:
        model: its number, in the order of first use.
        update: after how many steps of the optimizers.
        of_rank: the fields of each rank's event.
        order: of the looks at one model.
    """

    model: int
    update: int
    of_rank: tuple[Mapping[str, Any], ...]
    order: int = 0

    @property
    def start(self) -> bool:
        """Whether this is what the model held before its first pass."""
        return all(fields.get("start") for fields in self.of_rank)

    @property
    def comparable(self) -> bool:
        """Whether ranks hold the same parameters by name, shape and type."""
        return len({fields.get("shape") for fields in self.of_rank}) == 1

    @property
    def whole(self) -> bool:
        """Whether no rank holds parts of larger parameters."""
        return not any(fields.get("sharded") for fields in self.of_rank)

    @property
    def wrapped(self) -> bool:
        """Whether the script called a DistributedDataParallel module, on every rank."""
        return all(fields.get("wrapped") for fields in self.of_rank)

    @property
    def apart(self) -> list[int] | None:
        """Which of the parameters differ between ranks that should hold the same; None where none could be compared."""
        each = [str(fields.get("each", "")).split() for fields in self.of_rank]
        if not all(each) and self.whole and all("weights" in fields for fields in self.of_rank):
            return [] if len({fields["weights"] for fields in self.of_rank}) == 1 else [-1]
        return differing(each)

    def equal(self) -> bool:
        """Whether ranks hold the same, as far as that can be compared."""
        return not self.apart

    @property
    def gap(self) -> float:
        """How far two ranks' weights are apart, as a share of their norm; infinite where that is not known."""
        marks = [_number(fields.get("mark")) for fields in self.of_rank]
        norms = [_number(fields.get("norm")) for fields in self.of_rank]
        if not all(map(math.isfinite, [*marks, *norms])) or not max(norms):
            return math.inf
        return max(max(marks) - min(marks), max(norms) - min(norms)) / max(norms)


@dataclass(frozen=True)
class Made:
    """One update on all ranks: what an optimizer's step was made of.

    Attributes:
        optimizer: its number, in the order of first use.
        update: how many steps of the optimizers it made together with those before.
        of_rank: the fields of each rank's event.
    """

    optimizer: int
    update: int
    of_rank: tuple[Mapping[str, Any], ...]

    @property
    def comparable(self) -> bool:
        """Whether the optimizer holds the same tensors on all ranks, by shape and type."""
        return len({fields.get("layout") for fields in self.of_rank}) == 1

    @property
    def gradients_apart(self) -> list[int] | None:
        """Which gradients differ between ranks; None where none could be compared, or none was there."""
        each = [str(fields.get("gradients", "")).split() for fields in self.of_rank]
        if all(token == NOTHING for of_rank in each for token in of_rank):
            return None
        return differing(each)

    @property
    def some_equal(self) -> bool:
        """Whether some of the gradients that are there are equal on all ranks, and some are not."""
        each = [str(fields.get("gradients", "")).split() for fields in self.of_rank]
        there = [at for at, token in enumerate(each[0]) if token not in (NOTHING, UNREAD)]
        apart = set(self.gradients_apart or ())
        return bool(apart) and any(at not in apart for at in there)

    @property
    def loose_apart(self) -> list[int]:
        """Which tensors of no model differ between ranks after the step; empty where ranks hold others."""
        if not self.comparable or len({fields.get("loose") for fields in self.of_rank}) != 1:
            return []
        loose = {int(at) for at in str(self.of_rank[0].get("loose", "")).split()}
        apart = differing([str(fields.get("after", "")).split() for fields in self.of_rank])
        return [at for at in apart or [] if at in loose]

    def alike(self, what: str) -> bool:
        """Whether a field is the same on all ranks."""
        return len({fields.get(what) for fields in self.of_rank}) == 1


def differing(each: list[list[str]]) -> list[int] | None:
    """Places at which ranks that should have the same token have another; None where nothing could be compared.

    A token of a part says before a colon which part: ranks are compared that have the same one.
    """
    if len({len(of_rank) for of_rank in each}) != 1 or not each[0]:
        return None
    compared, apart = False, []
    for at, tokens in enumerate(zip(*each, strict=True)):
        parts: dict[str, set[str]] = {}
        counts: dict[str, int] = {}
        for token in tokens:
            part, _, digits = token.rpartition(":")
            if digits != UNREAD:
                parts.setdefault(part, set()).add(digits)
                counts[part] = counts.get(part, 0) + 1
        compared = compared or any(count > 1 for count in counts.values())
        if any(len(digits) > 1 for digits in parts.values()):
            apart.append(at)
    return apart if compared else None


def held(run: Run) -> list[Held]:
    """What was looked at on every rank, model by model, in the order of updates.

    A model that is wrapped on one rank and bare on another is not the same one: a rank may train another beside it.
    """
    logs = [dict(_looks(log)) for log in run.ranks]
    common = set(logs[0]).intersection(*logs[1:]) if logs else set()
    common = {key for key in common if len({bool(log[key].get("wrapped")) for log in logs}) == 1}
    return [Held(model, update, tuple(log[model, update, n] for log in logs), n) for model, update, n in sorted(common)]


def _looks(log: RankLog) -> Iterator[tuple[tuple[int, int, int], Mapping[str, Any]]]:
    seen: dict[tuple[int, int], int] = {}
    for event in log.events:
        if event.name == "replica":
            key = int(event.fields["model"]), int(event.fields["update"])
            seen[key] = seen.get(key, -1) + 1
            yield (*key, seen[key]), event.fields


def made(run: Run) -> list[Made]:
    """The updates that were looked at on every rank, in order."""
    logs = [
        {(int(e.fields["update"]), int(e.fields["optimizer"])): e.fields for e in log.events if e.name == "update_made"}
        for log in run.ranks
    ]
    common = set(logs[0]).intersection(*logs[1:]) if logs else set()
    return [Made(optimizer, update, tuple(log[update, optimizer] for log in logs)) for update, optimizer in sorted(common)]


def names(run: Run, model: int, places: list[int]) -> str:
    """Names of some of a model's parameters, by their places; empty where they are not known."""
    for event in run.ranks[0].events:
        if event.name == "replica" and event.fields.get("named") and int(event.fields["model"]) == model:
            known = str(event.fields["named"]).partition("|")[0].split()
            return listed([known[at] for at in places if 0 <= at < len(known)])
    return ""


def listed(words: list[str]) -> str:
    """A few of them, and how many more there are."""
    more = f" and {len(words) - NAMED} more" if len(words) > NAMED else ""
    return ", ".join(words[:NAMED]) + more


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
