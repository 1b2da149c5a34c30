"""How gradients queue for the link, computed: buckets fill in the order in which gradients are ready, and go one by one.

A model, not a measurement: a bucket sets out when its last gradient is ready and the one before it has arrived, and takes
2(W-1)·α + 2(W-1)/W · bytes/β (labkit.theory.ceilings). Computing is as fast while a bucket travels as without. The order
of the buckets is that of DistributedDataParallel from its second step on. Pure; no torch, no I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import UsageError
from .ceilings import all_reduce_s

MIB = 2**20

DEFAULT_MIB = 25.0
"""bucket_cap_mb of torch where none is given; the first bucket is of 1 MiB then."""


@dataclass(frozen=True)
class Gradients:
    """The gradients of one backward pass, in the order in which they are ready.

    Attributes:
        num_bytes: of each.
        ready_s: seconds from the start of the backward pass until each is ready.
        backward_s: seconds of the whole backward pass, without communication.
        other_s: seconds of all else of a step: forward pass, optimizer.
    """

    num_bytes: np.ndarray
    ready_s: np.ndarray
    backward_s: float
    other_s: float

    def __post_init__(self) -> None:
        if not len(self.num_bytes) or len(self.num_bytes) != len(self.ready_s):
            raise UsageError(
                f"give a size and a time for each gradient; given {len(self.num_bytes)} sizes, {len(self.ready_s)} times"
            )

    @property
    def total_bytes(self) -> int:
        return int(np.sum(self.num_bytes))

    @property
    def compute_s(self) -> float:
        """Seconds of a step without communication."""
        return self.other_s + self.backward_s


@dataclass(frozen=True)
class Link:
    """What carries an all-reduce of `world_size` ranks: latency of a step of the ring, and bytes a second."""

    world_size: int
    alpha_s: float
    bytes_per_s: float | None

    def seconds(self, num_bytes: float) -> float:
        """The time of one all-reduce; nothing on one rank."""
        if self.world_size < 2:
            return 0.0
        return float(all_reduce_s(num_bytes, self.world_size, self.alpha_s, self.bytes_per_s))


def evenly(sizes: Sequence[int], *, forward_s: float, backward_s: float) -> Gradients:
    """Gradients whose times follow from their sizes: each takes its share of the backward pass.

    Args:
        sizes: bytes of each, in the order in which they are ready: the last layer's first.
    """
    num_bytes = np.asarray(sizes, dtype=np.int64)
    return Gradients(num_bytes, np.cumsum(num_bytes) / num_bytes.sum() * backward_s, backward_s, forward_s)


def bucket_ends(num_bytes: np.ndarray, cap_bytes: float, first_cap_bytes: float | None = None) -> list[int]:
    """Where buckets end: position after the last gradient of each. One is full once it holds its cap or more.

    Args:
        cap_bytes: of each bucket.
        first_cap_bytes: of the first, as torch has it (1 MiB) where no cap is given by hand; None is the same for all.

    >>> bucket_ends(np.array([4, 4, 4, 4, 4]), cap_bytes=8)
    [2, 4, 5]
    """
    ends, held, cap = [], 0, cap_bytes if first_cap_bytes is None else first_cap_bytes
    for position, size in enumerate(num_bytes, start=1):
        held += int(size)
        if held >= cap:
            ends.append(position)
            held, cap = 0, cap_bytes
    return ends if held == 0 and ends else [*ends, len(num_bytes)]


@dataclass(frozen=True)
class Predicted:
    """One step, as the model has it.

    Attributes:
        step_s: its seconds.
        exposed_s: of these, those in which communication alone is waited for.
        buckets: how many.
        spans: by bucket: (ready, sets out, arrives), seconds from the start of the backward pass.
        bytes: by bucket.
    """

    step_s: float
    exposed_s: float
    buckets: int
    spans: tuple[tuple[float, float, float], ...]
    bytes: tuple[int, ...]


def predict(gradients: Gradients, link: Link, cap_bytes: float, first_cap_bytes: float | None = None) -> Predicted:
    """One step with buckets of a size.

    >>> gradients = evenly([1000] * 4, forward_s=0.2, backward_s=0.4)
    >>> one, four = (predict(gradients, Link(2, 0.0, 40_000.0), cap) for cap in (4000, 1000))
    >>> round(one.exposed_s, 3), round(four.exposed_s, 3)
    (0.1, 0.025)
    """
    free, spans, sizes, begin = 0.0, [], [], 0
    for end in bucket_ends(gradients.num_bytes, cap_bytes, first_cap_bytes):
        size = int(gradients.num_bytes[begin:end].sum())
        ready = float(gradients.ready_s[begin:end].max())
        start = max(ready, free)
        free = start + link.seconds(size)
        spans.append((ready, start, free))
        sizes.append(size)
        begin = end
    exposed = max(0.0, free - gradients.backward_s)
    return Predicted(gradients.compute_s + exposed, exposed, len(spans), tuple(spans), tuple(sizes))


def caps_to_try(total_bytes: int) -> list[float]:
    """Bucket sizes of a sweep, in MiB: all in one, 1/2, 1/4, 1/8, 1/16 of it, and one a parameter (0)."""
    total = total_bytes / MIB
    return [float(f"{total * 1.01:.3g}"), *(float(f"{total / part:.3g}") for part in (2, 4, 8, 16)), 0.0]


def first_try_mib(total_bytes: float) -> float:
    """A bucket size to begin with, in MiB: an eighth of the gradients, but torch's default where that would be more.

    The last bucket is waited for as a whole, and an eighth of a large model's gradients is a gigabyte. Then measure.

    >>> first_try_mib(12 * MIB), first_try_mib(14e9)
    (1.5, 25.0)
    """
    return min(total_bytes / 8 / MIB, DEFAULT_MIB)


def best_cap(gradients: Gradients, link: Link) -> tuple[float, Predicted]:
    """(MiB, what it gives): the best of all bucket sizes that differ, the largest such where several are as good."""
    caps = sorted({int(size) for size in np.cumsum(gradients.num_bytes)} | {1}, reverse=True)
    found = [(cap, predict(gradients, link, cap)) for cap in caps]
    cap, best = min(found, key=lambda pair: pair[1].step_s)
    return cap / MIB, best
