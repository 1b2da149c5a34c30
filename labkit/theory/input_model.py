"""How long a step takes that waits for data, and what several ranks gain that share a lock or a store. Arithmetic only.

Workers that prepare ahead make a pipeline: the slower of its two stages sets the pace, max(D/w, C). A share of the work that
is done one at a time limits what ranks gain: G. M. Amdahl, "Validity of the single processor approach to achieving large
scale computing capabilities", 1967.
"""

from __future__ import annotations

from dataclasses import dataclass


def amdahl(share: float, ranks: int) -> float:
    """How many times one rank's work W ranks do that meet each step, with a share of it one at a time."""
    return 1 / (share + (1 - share) / ranks)


def free_running(share: float, ranks: int) -> float:
    """The same for ranks that never wait for each other but at the lock."""
    return min(float(ranks), 1 / share) if share > 0 else float(ranks)


def serial_share(speed_up: float, ranks: int, *, meet: bool) -> float:
    """The share under a lock that explains a speed-up: the two functions above, solved for it."""
    share = (ranks / speed_up - 1) / (ranks - 1) if meet else 1 / speed_up
    return float(min(1.0, max(0.0, share)))


def expected_step(data: float, compute: float, workers: int, *, cores: int | None = None) -> float:
    """A step's time, in the unit of its arguments.

    Args:
        data, compute: D and C.
        workers: of one rank.
        cores: that a rank has, where preparing is processor time and so is compute; None where data cost waiting.
    """
    if workers == 0:
        return data + compute
    return max(data / workers, compute, *([(data + compute) / cores] if cores else []))


def store_share(rate: float, ranks: int) -> float:
    """What each of W ranks gets of a store that gives `rate` in all: R/W, when all of them ask.

    >>> store_share(1000.0, 8)
    125.0
    """
    return rate / ranks


@dataclass(frozen=True)
class Batch:
    """One batch on its way.

    Attributes:
        worker: who prepares it; None without workers.
        prepared: (begin, end).
        computed: (begin, end).
    """

    worker: int | None
    prepared: tuple[float, float]
    computed: tuple[float, float]


def pipeline(prepare: float, compute: float, workers: int, batches: int, *, prefetch: int = 2) -> list[Batch]:
    """When each batch is prepared and computed: workers take turns, and each prepares at most `prefetch` batches ahead.

    As torch's DataLoader does: as many batches are on the way as prefetch × workers, and a new one is asked for when the
    loop takes one.

    >>> [batch.computed for batch in pipeline(2.0, 1.0, 2, 3)]
    [(2.0, 3.0), (3.0, 4.0), (4.0, 5.0)]
    """
    made: list[Batch] = []
    free = [0.0] * max(1, workers)
    for number in range(batches):
        before = made[-1].computed[1] if made else 0.0
        if workers == 0:
            begin, worker = before, None
        else:
            worker, ahead = number % workers, prefetch * workers
            asked = made[number - ahead].computed[0] if number >= ahead else 0.0
            begin = max(free[worker], asked)
            free[worker] = begin + prepare
        start = max(begin + prepare, before)
        made.append(Batch(worker, (begin, begin + prepare), (start, start + compute)))
    return made
