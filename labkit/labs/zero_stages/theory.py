"""The bytes of the stages under the finger, with what a run kept."""

from __future__ import annotations

from ...detect.sharding.measures import strategy_of, strategy_runs
from ...detect.sharding.summary import kept_after_backward, psi, room
from ...record.schema import Record
from ...theory.panel import Measured, Panel
from ...theory.panels.zero_bytes import PANEL, in_the_chart
from ...theory.strategies import STRATEGIES
from ..on_the_curve import point


def panel(record: Record | None) -> Panel:
    """The panel; a record sets its sliders, without activations, and what each strategy kept lies at its stage."""
    runs = strategy_runs(record) if record is not None else {}
    if record is None or not runs or strategy_of(record.run) not in runs:
        return PANEL
    run = record.run
    settings = {"billions": psi(run) / 1e9, "ranks": run.world_size, "recipe": "fp32 Adam", "batch": 0}
    if room(run):
        settings["memory_gb"] = float(f"{room(run) * psi(run) / 1e9:.4g}")
    at = PANEL.at(**settings)
    points = []
    for name, one in runs.items():
        placed = in_the_chart(kept_after_backward(one) * psi(one), at, STRATEGIES[name].stage, "")
        label = "kept after the backward pass" + (f" by {name}" if len(runs) == 1 else ", by strategy")
        points.append((0, point(record, label, placed.x, placed.y)))
    said = (
        f"{strategy_of(run)} of your run kept {kept_after_backward(run):.3g} bytes a parameter after its backward pass, on "
        f"the largest rank ({record.provenance.source})."
    )
    return PANEL.with_measured(Measured(settings=settings, points=tuple(points), said=said))
