"""Exact facts of number formats, computed by the device itself: they come out equal, to the bit, on every machine."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...errors import UnknownName, UsageError

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
LENGTH = 4096


def dtype_of(name: str) -> torch.dtype:
    """A dtype by torch's name of it.

    Raises:
        UnknownName: with the valid names.
    """
    if name not in DTYPES:
        raise UnknownName("dtype", name, DTYPES)
    return DTYPES[name]


@dataclass(frozen=True)
class Stall:
    """Where a sum stops growing.

    Attributes:
        value: of the sum then.
        additions: that changed it; each further one changes nothing.
    """

    value: float
    additions: int


def stall(dtype: str, increment: float = 1e-4, *, limit: int = 10_000, device: str = "cpu") -> Stall:
    """Add `increment` to 0 again and again, until it changes nothing.

    Raises:
        UsageError: the sum still grows after `limit` additions.
    """
    kind = dtype_of(dtype)
    step = torch.tensor(increment, dtype=kind, device=device)
    total = torch.zeros((), dtype=kind, device=device)
    for count in range(limit):
        after = total + step
        if bool(after == total):
            return Stall(float(total), count)
        total = after
    raise UsageError(f"adding {increment:g} in {dtype} still changes the sum after {limit:,} additions; give a higher limit")


def add_up(dtype: str, increment: float = 1e-4, count: int = 100_000, *, device: str = "cpu") -> float:
    """The sum of `count` equal increments, one after the other."""
    kind = dtype_of(dtype)
    step = torch.tensor(increment, dtype=kind, device=device)
    total = torch.zeros((), dtype=kind, device=device)
    for _ in range(count):
        total += step
    return float(total)


def add_up_with_the_rest(dtype: str, increment: float = 1e-4, count: int = 10_000, *, device: str = "cpu") -> float:
    """The same sum with a second number beside it, of the same format, that keeps what rounding took (Kahan, 1965)."""
    kind = dtype_of(dtype)
    step = torch.tensor(increment, dtype=kind, device=device)
    total, rest = torch.zeros_like(step), torch.zeros_like(step)
    for _ in range(count):
        due = step + rest
        after = total + due
        rest, total = due - (after - total), after
    return float(total)


def mean_in_turn(parts: torch.Tensor) -> torch.Tensor:
    """The mean over ranks, as a ring adds it up: one rank's part after the other, rounded to their format each time.

    Args:
        parts: [ranks, elements].

    Returns:
        [elements], in the same format.
    """
    total = parts[0].clone()
    for part in parts[1:]:
        total += part
    return total / len(parts)


@dataclass(frozen=True)
class DotErrors:
    """Relative errors of dot products of 16-bit numbers, the largest of several, against exact sums of exact products.

    Attributes:
        sum_in_16: products added up in the 16-bit format itself.
        sum_in_32: products added up in fp32, one after the other.
        device: the device's own product of a row and a column, whose result is rounded to 16 bits.
    """

    sum_in_16: float
    sum_in_32: float
    device: float


def dot_errors(dtype: str = "float16", *, length: int = LENGTH, rows: int = 16, device: str = "cpu") -> DotErrors:
    """Multiply in 16 bits and add up in 16 or in 32: what `length` additions lose either way.

    The numbers are uniform in 0..1, from a fixed seed. A product of two 16-bit numbers fits fp32 exactly, and float64
    holds the exact sum of so few of them, so that what is measured is the adding up alone.
    """
    kind = dtype_of(dtype)
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.rand(rows, length, generator=generator).to(kind) for _ in range(2))
    exact = (left.double() * right.double()).sum(1)
    products = (left.float() * right.float()).to(device)
    short = torch.zeros(rows, dtype=kind, device=device)
    long = torch.zeros(rows, dtype=torch.float32, device=device)
    for column in products.unbind(1):
        short = (short.float() + column).to(kind)
        long = long + column
    own = torch.bmm(left[:, None].to(device), right[:, :, None].to(device)).flatten()
    return DotErrors(*(_worst(sums, exact) for sums in (short, long, own)))


def _worst(sums: torch.Tensor, exact: torch.Tensor) -> float:
    return float(((sums.cpu().double() - exact).abs() / exact).max())
