import math

import pytest

from labkit.detect.cost import Cost, cost_of
from labkit.errors import UsageError


def test_waste_costs_its_share_of_the_device_hours():
    assert cost_of(0.75, num_gpus=64, hours=72, price_per_gpu_hour=2.5) == Cost(3456.0, 8640.0)
    assert cost_of(0, num_gpus=64, hours=72, price_per_gpu_hour=2.5) == Cost(0, 0)
    assert cost_of(1, num_gpus=8, hours=1, price_per_gpu_hour=0) == Cost(8, 0)


@pytest.mark.parametrize("waste", [-0.1, 1.1, math.nan, math.inf])
def test_a_waste_that_is_no_share_is_refused(waste):
    with pytest.raises(UsageError, match=f"from 0 to 1; given {waste}"):
        cost_of(waste, num_gpus=1, hours=1, price_per_gpu_hour=1)


@pytest.mark.parametrize("name", ["num_gpus", "hours", "price_per_gpu_hour"])
@pytest.mark.parametrize("value", [-1, math.nan, math.inf])
def test_a_number_below_zero_or_without_end_is_refused_by_name(name, value):
    numbers = {"num_gpus": 1, "hours": 1, "price_per_gpu_hour": 1} | {name: value}
    with pytest.raises(UsageError, match=f"{name} must be 0 or more; given {value}"):
        cost_of(0.5, **numbers)
