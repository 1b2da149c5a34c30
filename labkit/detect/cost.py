"""What a waste costs: plain arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import UsageError


@dataclass(frozen=True)
class Cost:
    """What a share of device time comes to.

    Attributes:
        gpu_hours: wasted device hours.
        money: their price, in the unit of the price.
    """

    gpu_hours: float
    money: float


def cost_of(waste: float, *, num_gpus: float, hours: float, price_per_gpu_hour: float) -> Cost:
    """What `waste` costs on `num_gpus` devices for `hours` at a price per device and hour.

    Raises:
        UsageError: a waste outside 0..1, or a negative or non-finite number.

    >>> cost_of(0.75, num_gpus=64, hours=72, price_per_gpu_hour=2.5)
    Cost(gpu_hours=3456.0, money=8640.0)
    """
    if not 0 <= waste <= 1:
        raise UsageError(f"waste is a share from 0 to 1; given {waste}")
    for name, value in (("num_gpus", num_gpus), ("hours", hours), ("price_per_gpu_hour", price_per_gpu_hour)):
        if not (math.isfinite(value) and value >= 0):
            raise UsageError(f"{name} must be 0 or more; given {value}")
    gpu_hours = waste * num_gpus * hours
    return Cost(gpu_hours, gpu_hours * price_per_gpu_hour)
