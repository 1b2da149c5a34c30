"""What the labs' panels of theory share: a record's point with the record's own source, and numbers as a slider has them."""

from __future__ import annotations

from typing import Any

from ..record.schema import Record
from ..theory.panel import Point


def point(record: Record, label: str, x: float, y: float, *, over_link: bool = False) -> Point:
    """A point that says where it is from, as the record does.

    Args:
        over_link: whether an emulated link has a part in it, which makes it simulated.
    """
    source: Any = (record.link_source if over_link else None) or record.provenance.source
    return Point(label=f"{label}, {record.variant}", x=x, y=y, provenance=source)


def rounded(value: float) -> float:
    """Three digits: what a slider says is what it is set to.

    >>> rounded(0.123456)
    0.123
    """
    return float(f"{value:.3g}")
