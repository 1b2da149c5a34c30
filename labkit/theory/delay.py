"""Gradient descent with delayed gradients: what is stable, how stale gradients are, what waiting costs. Arithmetic only.

On a quadratic of curvature λ, descent with momentum β whose gradients are τ versions old is the recurrence

    w[t+1] = w[t] + β·(w[t] - w[t-1]) - a·w[t-τ],   a = lr·λ

It is stable while all roots of z^(τ+2) - (1+β)·z^(τ+1) + β·z^τ + a·z lie inside the unit circle. Without momentum that is
while a < 2·sin(π/(2(2τ+1))): S. A. Levin and R. M. May, "A note on difference-delay equations", Theoretical Population
Biology 9 (1976), who write the same limit as 2·cos(τπ/(2τ+1)). Any loss looks like such a quadratic close to a minimum
and along its steepest direction; a network's curvature moves while it trains, so the limit is where trouble begins, not
where training must fail.
"""

from __future__ import annotations

import math

import numpy as np

from ..errors import UsageError

MAX_DELAY = 512
_TOLERANCE = 1e-9


def stability_limit(delay: int, momentum: float = 0.0) -> float:
    """The largest lr·λ (exclusive) at which descent with gradients `delay` versions old is stable.

    In closed form without momentum. With it, from where the first root z = e^(iθ) of the characteristic polynomial meets the
    unit circle: there (τ - 1/2)·θ + arg(z - β) = π/2, whose left side grows with θ, and a = |z - 1|·|z - β|.

    Args:
        delay: τ, in versions, 0 to 512. With W asynchronous workers it is W - 1 on average.
        momentum: β of heavy-ball momentum, 0 <= β < 1.

    Raises:
        UsageError: a delay or a momentum out of range.

    >>> [round(stability_limit(delay), 3) for delay in (0, 1, 3, 7)]
    [2.0, 1.0, 0.445, 0.209]
    """
    _check(delay, momentum)
    if momentum == 0:
        return 2 * math.sin(math.pi / (2 * (2 * delay + 1)))
    if delay == 0:
        return 2 * (1 + momentum)

    def before(angle: float) -> bool:
        turned = math.atan2(math.sin(angle), math.cos(angle) - momentum)
        return (delay - 0.5) * angle + turned < math.pi / 2

    angle = bisect(before, math.pi)
    return 2 * math.sin(angle / 2) * math.sqrt(1 - 2 * momentum * math.cos(angle) + momentum**2)


def spectral_radius(delay: int, rate: float, momentum: float = 0.0) -> float:
    """The factor by which the slowest mode shrinks (below 1) or grows (above) with each update, at lr·λ = `rate`."""
    coefficients = np.zeros(delay + 3)
    coefficients[:3] += (1.0, -(1.0 + momentum), momentum)
    coefficients[delay + 1] += rate
    return float(np.abs(np.roots(coefficients)).max())


def delayed_descent(delay: int, rate: float, momentum: float = 0.0, *, updates: int = 1000) -> np.ndarray:
    """|w| by update on a quadratic with curvature 1, from w = 1 and at rest. Ends early where |w| passes 1e12.

    Before the first gradient has travelled, all gradients are those of the starting point.

    >>> delayed_descent(0, 0.5, updates=3).tolist()
    [1.0, 0.5, 0.25, 0.125]
    >>> delayed_descent(1, 0.5, updates=4).tolist()
    [1.0, 0.5, 0.0, 0.25, 0.25]
    """
    _check(delay, momentum)
    path = [1.0] * (delay + 2)
    for _ in range(updates):
        path.append(path[-1] + momentum * (path[-1] - path[-2]) - rate * path[-1 - delay])
        if abs(path[-1]) > 1e12:
            break
    return np.abs(np.array(path[delay + 1 :]))


def limit_by_iteration(delay: int, momentum: float = 0.0, *, updates: int = 4000) -> float:
    """The same limit, found without the formula: iterate the recurrence and look whether it grows."""

    def shrinks(rate: float) -> bool:
        sizes = delayed_descent(delay, rate, momentum, updates=updates)
        half = len(sizes) // 2
        return bool(sizes[half:].max() < sizes[:half].max() and sizes[-1] < 1e12)

    return bisect(shrinks, 4.0, steps=40)


def bisect(holds, high: float, *, steps: int = 60) -> float:
    """The value between 0 and `high` up to which `holds` holds."""
    low = 0.0
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
        if high - low < _TOLERANCE * high:
            break
    return low


def mean_staleness(workers: int, pushes: int) -> float:
    """Mean staleness of T pushes of W workers of any speeds: W - 1 - W(W-1)/2T.

    Holds exactly where a push and the next pull are one operation, all workers pull version 0, and nobody pulls again
    once T - W pushes are in. Then a worker's staleness adds up to (its last push) - (its pushes - 1), and the W last
    pushes are one of each worker.

    >>> mean_staleness(4, 400)
    2.985
    """
    return workers - 1 - workers * (workers - 1) / (2 * pushes)


def staleness_sum(workers: int, pushes: int) -> int:
    """The staleness of all T pushes together, (W-1)·T - W(W-1)/2: a whole number, and exact."""
    return (workers - 1) * pushes - workers * (workers - 1) // 2


def pushes_in_turn(workers: int, pushes: int) -> list[tuple[int, int, int]]:
    """(worker, version that it pulled, version that its gradient is applied to) of workers at one pace, push by push.

    All pull version 0 first. Each push makes a new version, which its worker pulls at once.

    >>> pushes_in_turn(3, 5)
    [(0, 0, 0), (1, 0, 1), (2, 0, 2), (0, 1, 3), (1, 2, 4)]
    """
    pulled, found = [0] * workers, []
    for version in range(pushes):
        worker = version % workers
        found.append((worker, pulled[worker], version))
        pulled[worker] = version + 1
    return found


def staleness_by_speed(workers: int, straggler: float) -> tuple[float, float]:
    """(staleness of a usual worker, of the slow one) when one of W is `straggler` times as slow and all keep their pace.

    While a worker computes, the others push as often as they can: (W - 2) + 1/k times, and k·(W - 1) times.

    >>> staleness_by_speed(4, 2.0)
    (2.5, 6.0)
    """
    if workers < 2:
        return 0.0, 0.0
    return workers - 2 + 1 / straggler, straggler * (workers - 1)


def throughput_ratio(workers: int, straggler: float) -> float:
    """Asynchronous over synchronous throughput when one worker of W is k times as slow: (W - 1 + 1/k) / (W/k).

    Computation only: what messages and the server cost comes on top.

    >>> throughput_ratio(4, 4.0)  # three that need not wait for the fourth
    3.25
    """
    return (workers - 1 + 1 / straggler) / (workers / straggler)


def _check(delay: int, momentum: float) -> None:
    if isinstance(delay, bool) or not isinstance(delay, int) or not 0 <= delay <= MAX_DELAY:
        raise UsageError(f"the delay is a whole number of versions from 0 to {MAX_DELAY}; given {delay!r}")
    if not 0 <= momentum < 1:
        raise UsageError(f"momentum must be from 0 to below 1; given {momentum!r}")
