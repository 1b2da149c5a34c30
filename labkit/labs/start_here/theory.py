"""The ring all-reduce under the finger, with the times that a survey measured."""

from __future__ import annotations

from ...detect.survey.repeats import link_fit
from ...record.schema import Record
from ...theory.panel import Measured, Panel
from ...theory.panels.ring import PANEL
from ...theory.scale import bytes_said, time_said
from ..on_the_curve import point, rounded

FASTEST_GB_PER_S = 500.0
"""Where no message was large enough to show a bandwidth."""


def panel(record: Record | None) -> Panel:
    """The panel; a record's fit sets its sliders, and each measured size lies on it."""
    fit = link_fit(record) if record is not None else None
    if record is None or fit is None:
        return PANEL
    rate = fit.bytes_per_s
    times = [(float(size), float(seconds)) for size, seconds in zip(fit.sizes, fit.measured_s, strict=True)]
    size, seconds = times[-1]
    settings = {
        "num_bytes": size,
        "ranks": fit.world_size,
        "alpha_us": max(0.001, rounded(fit.alpha_s * 1e6)),
        "gb_per_s": rounded(rate / 1e9) if rate else FASTEST_GB_PER_S,
    }
    points = tuple((0, point(record, "all-reduces here", *each, over_link=True)) for each in times)
    last = (1, point(record, "the largest here", float(fit.world_size), seconds, over_link=True))
    said = (
        f"Here {bytes_said(size)} took {time_said(seconds)} ({record.provenance.source}); the fit misses a time by "
        f"{fit.residual_max:.0%} at the most."
    )
    return PANEL.with_measured(Measured(settings=settings, points=(*points, last), said=said))
