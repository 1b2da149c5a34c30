"""How often machines fail, and how often to save: arithmetic. No torch, no I/O.

Times are in one unit throughout, hours or seconds alike. What comes of these formulas is `simulated`; counts of failures
that others published are `quoted`.

Sources: J. W. Young, A first order approximation to the optimum checkpoint interval, 1974; J. T. Daly, A higher order
estimate of the optimum checkpoint interval for restart dumps, 2006. Failures come at random, at a constant rate, also
while saving and restarting.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from ..errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What failures and saves cost.

    Attributes:
        save: time that training stands still for a save (C).
        restart: time from a failure to the first new step (R).
        mtbf: mean time between failures of the whole job (M).
    """

    save: float
    restart: float
    mtbf: float

    def __post_init__(self) -> None:
        for name, low in (("save", 0.0), ("restart", 0.0), ("mtbf", 1e-300)):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= low):
                raise UsageError(f"{name} must be {'above' if low else 'at least'} 0; given {value}")


def young_interval(costs: Costs) -> float:
    """The best interval between saves to first order: √(2·C·M). Young, 1974.

    Within 0.5 % of the best goodput while a save takes up to a tenth of the MTBF; above that, `best_interval` counts.

    >>> round(young_interval(Costs(save=60, restart=600, mtbf=6 * 3600)) / 60, 1)  # minutes
    26.8
    """
    return math.sqrt(2 * costs.save * costs.mtbf)


def goodput(interval: float, costs: Costs) -> float:
    """Share of the time that ends as lasting progress: τ / (M·e^(R/M)·(e^((τ+C)/M) − 1)). Daly, 2006.

    Args:
        interval: computation between two saves (τ), above 0.

    >>> costs = Costs(save=60, restart=600, mtbf=6 * 3600)
    >>> [round(goodput(interval, costs), 3) for interval in (300, 1610, 7200)]
    [0.804, 0.902, 0.812]
    """
    if not (interval > 0 and math.isfinite(interval)):
        raise UsageError(f"an interval must be above 0; given {interval}")
    exponent = (interval + costs.save) / costs.mtbf
    if exponent + costs.restart / costs.mtbf > 700:  # e^700 is near the largest float
        return 0.0
    return interval / (costs.mtbf * math.exp(costs.restart / costs.mtbf) * math.expm1(exponent))


def best_interval(costs: Costs) -> float:
    """The interval of the highest goodput, by ternary search; it does not depend on the restart."""
    if costs.save == 0:
        raise UsageError("a save that takes no time has no best interval: save at each step")
    low, high = 0.0, max(10 * young_interval(costs), 10 * costs.mtbf)
    for _ in range(200):
        third = (high - low) / 3
        if goodput(low + third, costs) < goodput(high - third, costs):
            low += third
        else:
            high -= third
    return (low + high) / 2


def without_checkpoints(job: float, costs: Costs) -> float:
    """Goodput of a job that begins anew after each failure: one interval as long as the job, and nothing to save."""
    return goodput(job, Costs(save=0.0, restart=costs.restart, mtbf=costs.mtbf))


def simulate(interval: float, costs: Costs, *, failures: int, seed: int) -> float:
    """Goodput of a run with this many random failures, one after the other. It knows nothing of the formula above.

    Chance leaves an error of about 1/√failures: 1 % needs some ten thousand.
    """
    if failures < 1:
        raise UsageError(f"a simulation needs at least one failure; given {failures}")
    draw, cycle = random.Random(seed), interval + costs.save
    clock, progress, failed = 0.0, 0.0, 0
    to_failure = draw.expovariate(1 / costs.mtbf)
    while failed < failures:
        whole = int(to_failure // cycle)  # computed and saved before it
        clock, progress, to_failure = clock + whole * cycle, progress + whole * interval, to_failure - whole * cycle
        clock, failed, to_failure = clock + to_failure, failed + 1, draw.expovariate(1 / costs.mtbf)
        while to_failure < costs.restart:  # a restart can fail as well
            clock, failed, to_failure = clock + to_failure, failed + 1, draw.expovariate(1 / costs.mtbf)
        clock, to_failure = clock + costs.restart, to_failure - costs.restart
    return progress / clock


def gpu_hours_between(interruptions: float, num_gpus: int, days: float) -> float:
    """GPU-hours from one interruption to the next, of a run that counted them."""
    return num_gpus * days * 24 / interruptions


def mtbf_hours(gpu_hours: float, num_gpus: int) -> float:
    """Mean hours between failures of a job, if each of its GPUs brings its share of them.

    >>> round(mtbf_hours(gpu_hours_between(419, 16_384, 54), 16_384), 1)  # the Llama 3 run
    3.1
    """
    return gpu_hours / num_gpus


def interruption_probability(gpu_hours: float, num_gpus: int, hours: float) -> float:
    """Chance that a job is interrupted at least once: 1 − e^(−GPU-hours of the job / GPU-hours between interruptions).

    >>> round(interruption_probability(50_000, 1024, 24), 2)
    0.39
    """
    return -math.expm1(-num_gpus * hours / gpu_hours)


def gpus_from_which_failures_are_due(gpu_hours: float, hours: float) -> int:
    """The smallest number of GPUs at which a job of so many hours lasts longer than the mean time between failures."""
    return math.floor(gpu_hours / hours) + 1
