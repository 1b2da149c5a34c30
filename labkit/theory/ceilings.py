"""What a machine can do, out of timings: rates, the line of a link, the roof over both. Pure: arrays in, numbers out.

An all-reduce of n bytes on W ranks by a ring takes 2(W-1) steps, each of which costs a latency α and moves n/W bytes at a
rate β: T = 2(W-1)·α + 2(W-1)/W · n/β (Thakur, Rabenseifner, Gropp, 2005). A kernel that does F floating-point operations
and moves B bytes takes at least max(F / peak, B / bandwidth): the roofline (Williams, Waterman, Patterson, 2009).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import UsageError

MIN_SIZES = 3
"""Different message sizes that a fit of two numbers needs, to leave one by which it can be seen to be wrong."""


@dataclass(frozen=True)
class Timing:
    """Repeats of one thing.

    Attributes:
        best_s, median_s: seconds of the quickest repeat, and of the middle one.
        repeats: how many there were.
    """

    best_s: float
    median_s: float
    repeats: int

    @property
    def spread(self) -> float:
        """Share of the median repeat's time that the best one did without: 0 on a machine that holds still."""
        return 1 - self.best_s / self.median_s


def timing(seconds: Sequence[float] | np.ndarray) -> Timing:
    """Summarise repeats.

    Raises:
        UsageError: no repeat, or one that is not above 0.

    >>> timing([0.3, 0.1, 0.2])
    Timing(best_s=0.1, median_s=0.2, repeats=3)
    """
    values = _positive("the seconds of a repeat", seconds)
    if not len(values):
        raise UsageError("there is no repeat to summarise; measure at least one")
    return Timing(float(values.min()), float(np.median(values)), len(values))


@dataclass(frozen=True)
class LinkFit:
    """The line through all-reduce times.

    Attributes:
        world_size: ranks of the all-reduce (W).
        sizes: message sizes in bytes, ascending.
        measured_s: the time at each size.
        alpha_s: latency of one step of the ring, in seconds.
        s_per_byte: seconds a byte, 1/β; 0 where the sizes were too small to show it.
    """

    world_size: int
    sizes: np.ndarray
    measured_s: np.ndarray
    alpha_s: float
    s_per_byte: float

    @property
    def bytes_per_s(self) -> float | None:
        """The bandwidth β; None where no size was large enough to show it."""
        return 1 / self.s_per_byte if self.s_per_byte > 0 else None

    @property
    def predicted_s(self) -> np.ndarray:
        """The line at each size."""
        return np.array([all_reduce_s(size, self.world_size, self.alpha_s, self.bytes_per_s) for size in self.sizes])

    @property
    def sent_bytes(self) -> np.ndarray:
        """What each rank of a ring sends at each size: 2(W − 1)/W of the message."""
        return 2 * (self.world_size - 1) / self.world_size * np.asarray(self.sizes, dtype=float)

    @property
    def residuals(self) -> np.ndarray:
        """By size: how far the line lies above the measurement (negative: below), as a share of the measurement."""
        return self.predicted_s / self.measured_s - 1

    @property
    def residual_max(self) -> float:
        """The largest residual, without its sign."""
        return float(np.abs(self.residuals).max())


def fit_link(sizes: Sequence[int] | np.ndarray, seconds: Sequence[float] | np.ndarray, world_size: int) -> LinkFit:
    """Fit α and β to all-reduce times by least squares of the relative errors, α ≥ 0 and 1/β ≥ 0.

    Relative, because times span three orders of magnitude: absolute errors would let the largest message decide alone.

    Args:
        sizes: bytes of each message; at least three different ones.
        seconds: the time of each.
        world_size: ranks that took part, at least 2: one rank sends nothing.

    Raises:
        UsageError: too few sizes, one rank, or a time that is not above 0.

    >>> sizes = [1_000, 10_000, 100_000]
    >>> fit = fit_link(sizes, [all_reduce_s(size, 4, 1e-5, 1e9) for size in sizes], 4)
    >>> round(fit.alpha_s, 9), round(fit.bytes_per_s)
    (1e-05, 1000000000)
    """
    if world_size < 2:
        raise UsageError(f"an all-reduce on {world_size} rank sends nothing; measure on 2 ranks or more")
    counts, times = _positive("a message's size", sizes), _positive("an all-reduce's time", seconds)
    if len(counts) != len(times):
        raise UsageError(f"{len(counts)} sizes and {len(times)} times; give a time for each size")
    if len(np.unique(counts)) < MIN_SIZES:
        raise UsageError(
            f"{len(np.unique(counts))} message size(s); a fit of two numbers needs {MIN_SIZES} different ones or more"
        )
    order = np.argsort(counts, kind="stable")
    counts, times = counts[order], times[order]
    steps = 2 * (world_size - 1)
    columns = np.stack([np.full(len(counts), steps) / times, steps / world_size * counts / times], axis=1)
    alpha_s, s_per_byte = _non_negative_least_squares(columns, np.ones(len(counts)))
    return LinkFit(world_size, counts, times, alpha_s, s_per_byte)


def _non_negative_least_squares(columns: np.ndarray, target: np.ndarray) -> tuple[float, float]:
    """Two coefficients, none below 0: the free solution if it is such, else the better of those with one at 0."""
    scale = np.linalg.norm(columns, axis=0)  # seconds and seconds a byte differ by nine orders of magnitude
    free = np.linalg.lstsq(columns / scale, target, rcond=None)[0] / scale
    if (free >= 0).all():
        return float(free[0]), float(free[1])
    alone = np.maximum(0, columns.T @ target / scale**2)
    errors = [np.linalg.norm(columns[:, i] * alone[i] - target) for i in (0, 1)]
    return (float(alone[0]), 0.0) if errors[0] <= errors[1] else (0.0, float(alone[1]))


def all_reduce_s(num_bytes: float, world_size: int, alpha_s: float, bytes_per_s: float | None) -> float:
    """Predict the time of a ring all-reduce: 2(W-1)·α + 2(W-1)/W · n/β; a β of None costs nothing.

    >>> all_reduce_s(100e6, 4, 10e-6, 1e9)  # 60 µs of latency, 150 ms of bytes
    0.15006
    """
    steps = 2 * (world_size - 1)
    return steps * alpha_s + (steps / world_size * num_bytes / bytes_per_s if bytes_per_s else 0.0)


def crossover_bytes(world_size: int, alpha_s: float, bytes_per_s: float) -> float:
    """The message at which latency and bandwidth cost the same: W·α·β. Smaller ones pay for steps, larger for bytes.

    >>> round(crossover_bytes(4, 10e-6, 1e9))
    40000
    """
    return world_size * alpha_s * bytes_per_s


def ridge(flops_per_s: float, bytes_per_s: float) -> float:
    """The arithmetic intensity, in operations a byte, above which arithmetic is the limit and below which memory is.

    >>> round(ridge(989e12, 3.35e12))  # an H100 in bf16
    295
    """
    return flops_per_s / bytes_per_s


def attainable(intensity: float | np.ndarray, flops_per_s: float, bytes_per_s: float) -> np.ndarray:
    """The roof: operations a second that a kernel of this intensity can reach."""
    return np.minimum(flops_per_s, np.asarray(intensity) * bytes_per_s)


def roofline_s(flops: float, num_bytes: float, flops_per_s: float, bytes_per_s: float) -> float:
    """The least time of a kernel: that of its arithmetic or that of its bytes, whichever is longer.

    >>> roofline_s(*matmul_work(4096, 4096, 4096, 2), 1e14, 1e12)  # arithmetic is the limit
    0.00137438953472
    """
    return max(flops / flops_per_s, num_bytes / bytes_per_s)


def matmul_work(m: int, n: int, k: int, element_bytes: int, batch: int = 1) -> tuple[int, int]:
    """(operations, bytes) of [M,K] x [K,N], `batch` times over: 2·M·N·K, and each operand moved once."""
    return 2 * m * n * k * batch, (m * k + k * n + m * n) * element_bytes * batch


def _positive(what: str, values: Sequence[float] | Sequence[int] | np.ndarray) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    bad = array[~(np.isfinite(array) & (array > 0))]
    if len(bad):
        raise UsageError(f"{what} must be above 0 and finite; given {bad[0]}")
    return array
