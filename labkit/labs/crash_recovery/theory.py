"""Goodput under the finger, with what a run's own saves and crash cost, at that run's own scale."""

from __future__ import annotations

import numpy as np

from ...detect.crash.measures import attempts, crashes, goodput, saves
from ...record.schema import Record, Run
from ...theory.panel import Measured, Panel
from ...theory.panels.goodput import PANEL, beside_a_run
from ...theory.reliability import Costs
from ...theory.scale import time_said
from ..on_the_curve import point


def panel(record: Record | None) -> Panel:
    """The panel of a cluster; beside it a record's own costs, and its goodput as measured."""
    own = _costs(record.run) if record is not None else None
    if record is None or own is None:
        return PANEL
    reached, interval = goodput(record.run), _interval_s(record)
    if reached is None or interval is None:
        return PANEL
    said = (
        f"In your run a save took {time_said(own.save)}, the restart {time_said(own.restart)}, and a failure came in "
        f"{time_said(own.mtbf)}; {reached:.0%} of the time was work that lasts ({record.provenance.source}). That is one "
        "run with few failures, and the curve is a mean over many: expect the point beside it."
    )
    at = (1, point(record, "your run", interval, reached))
    return beside_a_run(own).with_measured(Measured(settings={}, points=(at,), said=said))


def _costs(run: Run) -> Costs | None:
    """What a run's saves, restart and failures cost, in seconds; None for one that saves nothing or that nothing killed."""
    stalls = [save.stall_s for save in saves(run) if save.stall_s > 0]
    happened, all_of_it = crashes(run), attempts(run)
    if not stalls or not happened:
        return None
    lasted = (all_of_it[-1].last_ns - all_of_it[0].started_ns) / 1e9
    restart = float(np.median([crash.restart_s for crash in happened]))
    return Costs(save=float(np.median(stalls)), restart=restart, mtbf=max(1e-3, lasted / len(happened)))


def _interval_s(record: Record) -> float | None:
    """Seconds of computing between two saves."""
    every, steps = record.config.get("interval"), record.run.ranks[0].steps
    if not isinstance(every, int) or not steps:
        return None
    return every * float(np.median([step.end_ns - step.start_ns for step in steps])) / 1e9
