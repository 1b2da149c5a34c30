"""Lab 08: how many spare nodes pay for themselves."""

from __future__ import annotations

from ...words import plural
from ..panel import Axis, Chart, Curve, Drawn, Panel, Point, Slider, powers_of_two
from ..reliability import Costs, best_interval
from ..scale import share_said, time_said
from ..spares import best_spares, goodput_by_spares, waits_for_repair

SAVE_S, RESTART_S = 60.0, 900.0
"""A save of a minute and a restart of a quarter of an hour, as in the lesson's example."""


def draw(nodes: int, mtbf_h: float, repair_h: float, spares: int) -> Drawn:
    """Goodput by number of spares: of the job, and for each node that is paid."""
    costs, repair = Costs(save=SAVE_S, restart=RESTART_S, mtbf=mtbf_h * 3600), repair_h * 3600
    interval = best_interval(costs)

    best = best_spares(interval, costs, nodes=nodes, repair=repair)
    most = max(2 * best, spares, 4)
    a_node = goodput_by_spares(interval, costs, nodes=nodes, most=most, repair=repair)
    stands, here, reached = waits_for_repair(spares, repair, costs.mtbf), a_node[spares], a_node[best]
    counts = tuple(map(float, range(most + 1)))
    said = (
        f"{plural(nodes, 'node')} and {plural(spares, 'spare')}: the job stands still for {share_said(stands)} of the time, "
        f"because a node that failed is away for {time_said(repair)} and one fails every {time_said(costs.mtbf)}. Goodput "
        f"for each node that you pay for is {share_said(here)}. It is best with {plural(best, 'spare')}: "
        f"{share_said(reached)}."
    )
    chart = Chart(
        title="Spare nodes",
        x=Axis(label="spare nodes", low=0, high=counts[-1]),
        y=Axis(label="goodput", percent=True, low=0, high=1.05),
        curves=(
            Curve(label="for each node that is paid", x=counts, y=tuple(a_node)),
            Curve(
                label="of the job",
                x=counts,
                y=tuple(value * (nodes + count) / nodes for value, count in zip(a_node, counts, strict=True)),
                minor=True,
            ),
        ),
        points=(
            Point(label="best", x=float(best), y=reached, aside=True),
            Point(label="your spares", x=float(spares), y=here),
        ),
    )
    numbers = {"stands_still": stands, "goodput_a_node": here, "best_spares": float(best), "best_goodput_a_node": reached}
    return Drawn(charts=(chart,), said=said, numbers=numbers)


PANEL = Panel(
    title="How many spare nodes pay for themselves?",
    sliders=(
        Slider(name="nodes", label="nodes that the job needs (N)", unit="", stops=powers_of_two(8, 4096), value=256),
        Slider(name="mtbf_h", label="between failures of the job (M)", unit="h",
               stops=(0.5, 1, 2, 3, 4, 6, 8, 12, 24, 48, 72, 168, 336, 720), value=3),
        Slider(name="repair_h", label="until a failed node is back (T)", unit="h",
               stops=(0.25, 0.5, 1, 2, 4, 8, 12, 24, 48, 72, 168, 336), value=24),
        Slider(name="spares", label="spare nodes (S)", unit="", stops=(*range(21), 24, 28, 32, 48, 64, 96, 128), value=0),
    ),
    draw=draw,
    source="waiting for a repair: Erlang's loss formula with S + 1 servers, 1917; goodput: Daly, 2006, with C = 1 min, "
    "R = 15 min, and the best interval",
)  # fmt: skip
