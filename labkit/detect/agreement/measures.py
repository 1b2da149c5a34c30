"""What ranks held after updates, out of a record. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...record.schema import RankLog, Run


@dataclass(frozen=True)
class Held:
    """One model after one update, on all ranks.

    Attributes:
        model: its number, in the order of first use.
        update: after how many steps of the optimizers.
        of_rank: the fields of each rank's event.
    """

    model: int
    update: int
    of_rank: tuple[dict[str, Any], ...]

    @property
    def comparable(self) -> bool:
        """Whether ranks hold the same parameters by name, shape and type, whole."""
        return len({fields.get("shape") for fields in self.of_rank}) == 1 and not any(
            fields.get("sharded") for fields in self.of_rank
        )

    @property
    def wrapped(self) -> bool:
        """Whether the script called a DistributedDataParallel module, on every rank."""
        return all(fields.get("wrapped") for fields in self.of_rank)

    def equal(self, what: str = "weights") -> bool:
        """Whether all ranks hold the same, by its hash."""
        return len({fields.get(what) for fields in self.of_rank}) == 1


def held(run: Run) -> list[Held]:
    """What was looked at on every rank, model by model, in the order of updates."""
    logs = [dict(_events(log)) for log in run.ranks]
    common = set(logs[0]).intersection(*logs[1:]) if logs else set()
    return [Held(model, update, tuple(log[model, update] for log in logs)) for model, update in sorted(common)]


def _events(log: RankLog) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
    for event in log.events:
        if event.name == "replica":
            yield (int(event.fields["model"]), int(event.fields["update"])), dict(event.fields)
