"""What DistributedSamplers share out: one data set that all ranks hold, or a part that each has of its own. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...record.schema import Run

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Shared:
    """A loader with a DistributedSampler.

    Attributes:
        loader: number of its stream of data.
        of_rank: what each rank says of it.
    """

    loader: int
    of_rank: tuple[Fields, ...]

    @property
    def where(self) -> str | None:
        """Where it is read."""
        return str(self.of_rank[0]["where"]) or None

    @property
    def over_all_ranks(self) -> bool:
        """Whether it shares out among all ranks of the run, each with a share of its own."""
        ranks = len(self.of_rank)
        shares = {int(fields["rank"]) for fields in self.of_rank}
        return ranks > 1 and len(shares) == ranks and all(int(fields["ranks"]) == ranks for fields in self.of_rank)

    @property
    def parts(self) -> bool:
        """Whether no row of any column is on two ranks: each holds rows of its own."""
        columns = [str(fields["rows"]).split("|") for fields in self.of_rank]
        if not all(fields["rows"] for fields in self.of_rank) or len({len(one) for one in columns}) > 1:
            return False
        return all(_apart(column) for column in zip(*columns, strict=True))


def _apart(of_ranks: tuple[str, ...]) -> bool:
    seen: set[str] = set()
    for rows in of_ranks:
        own = set(rows.split())
        if own & seen:
            return False
        seen |= own
    return True


def shared_out(run: Run) -> list[Shared]:
    """All loaders with a DistributedSampler that every rank reads."""
    of_ranks = [
        {int(event.fields["loader"]): event.fields for event in reversed(log.events) if event.name == "sampled"}
        for log in run.ranks
    ]
    everywhere = set.intersection(*map(set, of_ranks)) if of_ranks else set()
    return [Shared(loader, tuple(of[loader] for of in of_ranks)) for loader in sorted(everywhere)]
