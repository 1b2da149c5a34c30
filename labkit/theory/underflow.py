"""How many gradients a number format loses, and how far it rounds the others. Arithmetic only.

Rounding to nearest, ties to even (IEEE 754): a number of at most half the smallest subnormal becomes 0, and one of at least
the largest number and half a step more becomes infinite. Gradients are taken as log-normal, which is a model: their sizes
spread over decades, and a real histogram has its own shape.
"""

from __future__ import annotations

import math

from .formats import NumberFormat


def zero_below(form: NumberFormat) -> float:
    """The largest size that becomes 0.

    >>> from .formats import FP16
    >>> zero_below(FP16) == 2.0**-25
    True
    """
    return form.smallest_subnormal / 2


def infinite_from(form: NumberFormat) -> float:
    """The smallest size that becomes infinite; in a format without infinity, from which on it becomes the largest number.

    >>> from .formats import E4M3, FP16
    >>> infinite_from(FP16), infinite_from(E4M3)
    (65520.0, 464.0)
    """
    last = math.frexp(form.largest)[1] - 1  # exponent of the largest number
    return form.largest + 2.0 ** (last - form.significand_bits - 1)


def share_below(size: float, median: float, decades: float) -> float:
    """Share of log-normal sizes below a size; `decades` is the standard deviation of their logarithm to base 10.

    >>> share_below(1e-6, 1e-6, 1.0), round(share_below(1e-7, 1e-6, 1.0), 3)
    (0.5, 0.159)
    """
    return 0.5 * math.erfc((math.log10(median) - math.log10(size)) / (decades * math.sqrt(2)))


def lost_to_zero(form: NumberFormat, scale: float, median: float, decades: float) -> float:
    """Share of the gradients that become 0 when the loss is multiplied by a scale."""
    return share_below(zero_below(form), median * scale, decades)


def lost_to_infinity(form: NumberFormat, scale: float, median: float, decades: float) -> float:
    """Share of the gradients that become infinite when the loss is multiplied by a scale: one is enough to skip a step."""
    return 1 - share_below(infinite_from(form), median * scale, decades)


def largest_relative_error(form: NumberFormat, size: float) -> float:
    """How far rounding may move a number of this size, as a share of it; 1 where nothing is left of it.

    >>> from .formats import BF16
    >>> largest_relative_error(BF16, 1.0)
    0.00390625
    """
    if size >= infinite_from(form) or size <= zero_below(form):
        return 1.0
    exponent = max(math.frexp(size)[1] - 1, 1 - form.bias)
    return min(1.0, 2.0 ** (exponent - form.significand_bits) / 2 / size)
