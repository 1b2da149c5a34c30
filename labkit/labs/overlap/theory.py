"""Buckets under the finger, with a run's own gradients, link and step."""

from __future__ import annotations

import numpy as np

from ...detect.overlap.measures import longest_s, measured_steps
from ...detect.overlap.summary import model_of, sweep_of
from ...record.schema import Record
from ...theory.overlap_model import MIB
from ...theory.panel import Measured, Panel, Point
from ...theory.panels.buckets import PANEL, of_model
from ...theory.scale import time_said
from ..on_the_curve import point, rounded

SMALLEST_MIB = 0.001
"""A cap of 0, a bucket a parameter, has its place here on a logarithmic axis."""


def panel(record: Record | None) -> Panel:
    """The panel; a record's gradients and link set its sliders, and the steps that it measured lie on it."""
    parts = model_of(record) if record is not None else None
    if record is None or parts is None:
        return PANEL
    gradients, link = parts
    tried = _tried(record)
    if not tried or link.bytes_per_s is None:
        return PANEL
    settings = {
        "gradients_mb": rounded(gradients.total_bytes / 1e6),
        "backward_ms": rounded(gradients.backward_s * 1e3),
        "ranks": link.world_size,
        "alpha_us": max(0.001, rounded(link.alpha_s * 1e6)),
        "gb_per_s": rounded(link.bytes_per_s / 1e9),
        "cap_mib": tried[-1].x,
    }
    said = (
        f"With buckets of {tried[-1].x:g} MiB your step took {time_said(tried[-1].y / 1e3)} ({tried[-1].provenance}). The "
        "curve takes computing to be as fast while a bucket travels as without."
    )
    points = tuple((0, each) for each in tried)
    return of_model(gradients).with_measured(Measured(settings=settings, points=points, said=said))


def _tried(record: Record) -> list[Point]:
    """By bucket size that was run: the median step, in ms."""
    sweep = sweep_of(record)
    if sweep:
        pairs = [(tried.cap_mib, tried.median_s) for tried in sweep]
    else:
        cap, steps = record.run.fact("ddp_bucket_cap_bytes"), measured_steps(record.run)
        if not isinstance(cap, (int, float)) or not steps:
            return []
        pairs = [(cap / MIB, float(np.median([longest_s(of_ranks) for of_ranks in steps])))]
    return [
        point(record, "your step", max(SMALLEST_MIB, rounded(cap)), 1e3 * seconds, over_link=True) for cap, seconds in pairs
    ]
