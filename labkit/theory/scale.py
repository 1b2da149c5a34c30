"""Amounts as sentences say them: bytes, seconds, rates, with the prefix that suits."""

from __future__ import annotations

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def with_prefix(value: float, unit: str) -> str:
    """Three digits and the largest prefix that leaves one before the point.

    >>> with_prefix(1.5e9, "B"), with_prefix(12.0, "FLOP/s")
    ('1.5 GB', '12 FLOP/s')
    """
    for factor, prefix in _PREFIXES:
        if abs(value) >= factor * 0.9995:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def bytes_said(num_bytes: float) -> str:
    """Bytes in decimal units: "100 MB"."""
    return with_prefix(num_bytes, "B")


def time_said(seconds: float) -> str:
    """A time in the unit that suits, down to nanoseconds.

    >>> time_said(0.15006), time_said(2e-5), time_said(7200)
    ('150 ms', '20 µs', '2 h')
    """
    for unit, size in (("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(seconds) >= size * 0.9995:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def share_said(share: float) -> str:
    """A share in per cent, with a digit more where it is small.

    >>> share_said(0.5), share_said(0.0123), share_said(0.0), share_said(1e-9)
    ('50 %', '1.2 %', '0 %', 'under 0.01 %')
    """
    percent = 100 * share
    if 0 < percent < 0.01:
        return "under 0.01 %"
    return f"{percent:.0f} %" if percent >= 9.95 or percent == 0 else f"{percent:.2g} %"
