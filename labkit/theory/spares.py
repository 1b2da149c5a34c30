"""What spare nodes buy: how long a job waits for a repair, and the goodput for each node that is paid. No torch, no I/O.

A job needs N nodes and has S spares. A node that fails goes to repair for a mean time T, and a spare takes its place. The
job stands still while S + 1 nodes are in repair, and idle nodes do not fail. That is a loss system with S + 1 servers: the
share of the time in which it stands still is Erlang's loss formula (A. K. Erlang, 1917), whatever the distribution of T.
Times are in one unit throughout.
"""

from __future__ import annotations

import math
import random

from ..errors import UsageError
from .reliability import Costs, goodput


def waits_for_repair(spares: int, repair: float, mtbf: float) -> float:
    """Share of the time in which a job stands still because all its spares are used up: B(S + 1, T/M).

    Args:
        spares: S, from 0 on.
        repair: mean time until a failed node is back (T).
        mtbf: mean time between failures of the whole job (M).

    >>> [round(waits_for_repair(spares, 24, 12), 3) for spares in range(5)]
    [0.667, 0.4, 0.211, 0.095, 0.037]
    """
    return waits_by_spares(spares, repair, mtbf)[-1]


def waits_by_spares(most: int, repair: float, mtbf: float) -> list[float]:
    """The same for 0, 1, … up to `most` spares."""
    if most < 0 or not (repair >= 0 and math.isfinite(repair)) or not mtbf > 0:
        raise UsageError(f"spares and repair start at 0, mtbf is above 0; given {most}, {repair}, {mtbf}")
    load, blocked, found = repair / mtbf, 1.0, []
    for servers in range(1, most + 2):
        blocked = load * blocked / (servers + load * blocked)
        found.append(blocked)
    return found


def goodput_a_node(interval: float, costs: Costs, *, nodes: int, spares: int, repair: float) -> float:
    """Goodput, waits for repairs included, for each of the N + S nodes that are paid.

    >>> costs = Costs(save=60, restart=900, mtbf=3 * 3600)
    >>> [round(goodput_a_node(1138, costs, nodes=256, spares=spares, repair=86400), 2) for spares in (0, 8, 16, 64)]
    [0.09, 0.66, 0.78, 0.66]
    """
    return goodput_by_spares(interval, costs, nodes=nodes, most=spares, repair=repair)[-1]


def goodput_by_spares(interval: float, costs: Costs, *, nodes: int, most: int, repair: float) -> list[float]:
    """The same for 0, 1, … up to `most` spares."""
    if nodes < 1:
        raise UsageError(f"a job needs at least one node; given {nodes}")
    runs = goodput(interval, costs)
    waits = waits_by_spares(most, repair, costs.mtbf)
    return [(1 - stands) * runs * nodes / (nodes + spares) for spares, stands in enumerate(waits)]


def best_spares(interval: float, costs: Costs, *, nodes: int, repair: float) -> int:
    """The number of spares with the highest goodput for each node that is paid."""
    most = 32 + 2 * math.ceil(repair / costs.mtbf)  # further ones hardly shorten a wait, and are paid
    values = goodput_by_spares(interval, costs, nodes=nodes, most=most, repair=repair)
    return values.index(max(values))


def simulate_waits(spares: int, repair: float, mtbf: float, *, failures: int, seed: int) -> float:
    """The same share of a job with so many random failures, each repair as long as `repair`. It knows no formula."""
    draw, clock, stood, failed = random.Random(seed), 0.0, 0.0, 0
    back: list[float] = []  # when nodes come back from repair, in order, since all repairs take as long
    while failed < failures:
        clock += draw.expovariate(1 / mtbf)
        back = [when for when in back if when > clock]
        back.append(clock + repair)
        failed += 1
        if len(back) > spares:
            stood += back[0] - clock
            clock = back.pop(0)
    return stood / clock
