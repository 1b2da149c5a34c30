"""Numbers as sentences say them."""

from __future__ import annotations


def plural(count: float, noun: str, several: str = "") -> str:
    """A count with its noun: "1 rank", "1,024 ranks", "0 steps". The plural takes an s unless it is given."""
    number = f"{count:,}" if isinstance(count, int) else f"{count:g}"
    return f"{number} {noun if count == 1 else several or noun + 's'}"
