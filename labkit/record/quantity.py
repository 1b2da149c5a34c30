"""A number as a person reads it: with its unit, its source and its spread; and what no number can be said of."""

from __future__ import annotations

import math
from dataclasses import dataclass

NOT_MEASURABLE = "not measurable here: the step times differ by more than what is measured"

USEFUL = 0.2
"""A share that may be off by more than this says nothing."""

ROUNDING = 0.02
"""By so much an estimate may miss what a share can be and still be that: the times that it is made of were not one."""


@dataclass(frozen=True)
class Quantity:
    """A value with its unit, its source where that differs from the record's, and its spread where it is an estimate.

    A float whose unit begins with "of" is a share. One that is estimated from times is made by `share`.

    >>> print(Quantity(0.25, "of the data set"), Quantity(12.3456, "ms", spread=0.4), Quantity(1797, "samples"), sep="; ")
    25.0% of the data set; 12.35 ± 0.4 ms; 1,797 samples
    >>> print(Quantity(1.46, "of step time"))
    not measurable here: the step times differ by more than what is measured
    """

    value: float | int | bool | str
    unit: str = ""
    source: str | None = None
    spread: float | None = None

    def __str__(self) -> str:
        if isinstance(self.value, bool):
            return "yes" if self.value else "no"
        if isinstance(self.value, int):
            text = f"{self.value:,}"
        elif isinstance(self.value, float):
            if self.is_share and not -1e-9 <= self.value <= 1 + 1e-9:
                return NOT_MEASURABLE  # never a share of 146 %
            text = f"{self.value:.1%}" if self.is_share else f"{self.value:.4g}"
            text += self._give_or_take
        else:
            text = self.value
        return f"{text} {self.unit}".rstrip()

    @property
    def is_share(self) -> bool:
        """Whether it is a share of something: a float from 0 to 1."""
        return isinstance(self.value, float) and self.unit.startswith("of ")

    @property
    def _give_or_take(self) -> str:
        if self.spread is None:
            return ""
        return f" ± {self.spread:.1%}" if self.is_share else f" ± {self.spread:.2g}"

    @property
    def said(self) -> str:
        """As text, with its source where that differs from the record's."""
        return f"{self} ({self.source})" if self.source else str(self)


def share(value: float, unit: str, source: str | None = None, *, spread: float = 0.0, why: str = NOT_MEASURABLE) -> Quantity:
    """A share that is estimated from times: from 0 to 1, or said not to be measurable.

    Args:
        value: as estimated; differences of noisy times may lie outside of what a share can be.
        unit: what it is a share of, "of …".
        spread: half the width of where it may lie.
        why: what is said in its place where it lies outside by more than its spread, or the spread is too large.

    >>> print(share(0.31, "of step time", spread=0.04))
    31.0% ± 4.0% of step time
    >>> print(share(1.01, "of step time"))
    100.0% of step time
    >>> print(share(0.31, "of step time", spread=0.5))
    not measurable here: the step times differ by more than what is measured
    """
    room = max(spread, ROUNDING)
    if not math.isfinite(value) or spread > USEFUL or not -room <= value <= 1 + room:
        return Quantity(why, "", source)
    return Quantity(min(1.0, max(0.0, value)), unit, source, spread or None)
