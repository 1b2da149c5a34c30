"""How much of the data a rank has seen after some epochs, by how its share is drawn. Arithmetic only."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import UsageError


def seen_after(epochs: float, ranks: int) -> float:
    """Share of the data that one rank has seen: 1 - (1 - 1/W)^e, if each epoch deals the samples anew.

    An epoch gives a sample to this rank with probability 1/W, whatever the epochs before gave. So the sample was missed
    in all e of them with probability (1 - 1/W)^e. Elementary probability; the mean over all samples is the share.

    Args:
        epochs: e, at least 0.
        ranks: W, at least 1.

    >>> [seen_after(epochs, 4) for epochs in (0, 1, 2)]
    [0.0, 0.25, 0.4375]
    """
    if epochs < 0 or ranks < 1:
        raise UsageError(f"epochs are at least 0 and ranks at least 1; given {epochs} and {ranks}")
    return 1 - (1 - 1 / ranks) ** epochs


def dealt(order: Sequence[int], ranks: int) -> list[list[int]]:
    """Who reads what in an epoch: padded with its own beginning to a multiple of W, then every W-th sample to each rank.

    That is what torch's DistributedSampler does to the order that it shuffled, with drop_last=False.

    >>> dealt([4, 0, 3, 1, 2], 2)
    [[4, 3, 2], [0, 1, 4]]
    """
    if ranks < 1 or not len(order):
        raise UsageError(f"there must be a sample and a rank; given {len(order)} samples and {ranks} ranks")
    short = -len(order) % ranks
    padded = [*order, *(list(order) * (short // len(order) + 1))[:short]]
    return [padded[rank::ranks] for rank in range(ranks)]
