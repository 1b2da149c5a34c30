"""A ring all-reduce step by step: who has whose parts of which chunk. Exact; arithmetic only.

Reduce-scatter, then all-gather, on a ring (Thakur, Rabenseifner, Gropp, 2005). A message is cut into W chunks. In step s of
the first half rank r sends chunk (r - s) mod W to rank r + 1, which adds it to its own; in step s of the second half it
sends chunk (r + 1 - s) mod W, and the receiver keeps it as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import UsageError


@dataclass(frozen=True)
class Sent:
    """One message of a step: a chunk, from a rank to the next."""

    chunk: int
    source: int
    target: int


@dataclass(frozen=True)
class RingState:
    """What every rank holds after some steps.

    Attributes:
        step: how many steps are done.
        half: "before", "reduce-scatter" or "all-gather": of the step that was done last.
        sent: the messages of that step, one a rank.
        holds: by rank, by chunk: the ranks whose numbers are in this chunk's sum.
    """

    step: int
    half: str
    sent: tuple[Sent, ...]
    holds: tuple[tuple[frozenset[int], ...], ...]

    def whole(self, rank: int, chunk: int) -> bool:
        """Whether a rank holds the sum over all ranks of a chunk."""
        return len(self.holds[rank][chunk]) == len(self.holds)


def ring_states(ranks: int) -> list[RingState]:
    """The states before the first step and after each of the 2(W-1) steps.

    >>> states = ring_states(4)
    >>> len(states) - 1, [sum(states[-1].whole(rank, chunk) for chunk in range(4)) for rank in range(4)]
    (6, [4, 4, 4, 4])
    """
    if isinstance(ranks, bool) or not isinstance(ranks, int) or ranks < 2:
        raise UsageError(f"a ring has 2 ranks or more; given {ranks!r}")
    holds = [[frozenset({rank}) for _ in range(ranks)] for rank in range(ranks)]
    states = [RingState(0, "before", (), _frozen(holds))]
    for step in range(2 * (ranks - 1)):
        reducing = step < ranks - 1
        first = 0 if reducing else 1 + (ranks - 1)
        sent = tuple(Sent((rank + first - step) % ranks, rank, (rank + 1) % ranks) for rank in range(ranks))
        carried = [holds[each.source][each.chunk] for each in sent]
        for each, parts in zip(sent, carried, strict=True):
            own = holds[each.target][each.chunk]
            holds[each.target][each.chunk] = own | parts if reducing else parts
        states.append(RingState(step + 1, "reduce-scatter" if reducing else "all-gather", sent, _frozen(holds)))
    return states


def _frozen(holds: list[list[frozenset[int]]]) -> tuple[tuple[frozenset[int], ...], ...]:
    return tuple(tuple(of_rank) for of_rank in holds)
