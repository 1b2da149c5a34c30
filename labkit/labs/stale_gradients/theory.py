"""The stability line under the finger, with a run's own staleness, learning rate and curvature."""

from __future__ import annotations

from ...detect.staleness.measures import pushes, sharpness_of, stability
from ...record.schema import Record
from ...theory.panel import Measured, Panel
from ...theory.panels.staleness import PANEL
from ..on_the_curve import point, rounded


def panel(record: Record | None) -> Panel:
    """The panel; a record sets its sliders, and lr·λ at the run's mean staleness lies on it."""
    limits = stability(record) if record is not None else None
    if record is None or limits is None:
        return PANEL
    of_run, curvature = pushes(record.run), sharpness_of(record)
    assert of_run is not None and curvature is not None  # stability looked at both
    delay, stale = min(63, limits.delay), float(of_run.staleness.mean())
    settings = {
        "delay": delay,
        "lr": rounded(limits.rate / curvature),
        "curvature": rounded(curvature),
        "momentum": float(str(record.run.fact("momentum", 0.0))),
    }
    said = (
        f"Your run's gradients were {stale:.2f} versions old on average, and the largest curvature that it met is "
        f"{curvature:.3g} ({record.provenance.source}): {limits.times_the_limit:.2g} times the limit at τ = {limits.delay}."
    )
    at = (0, point(record, "your run", stale, limits.rate))
    return PANEL.with_measured(Measured(settings=settings, points=(at,), said=said))
