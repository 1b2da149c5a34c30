"""The pipeline of preparing and computing under the finger, with a run's own step."""

from __future__ import annotations

from ...detect.input.measures import counted, mean_waits, store_rates
from ...record.schema import Record
from ...theory.panel import Measured, Panel
from ...theory.panels.input_pipeline import PANEL
from ...theory.scale import time_said
from ..on_the_curve import point, rounded

NOTHING_MS = 0.01
"""What preparing costs where later epochs prepared nothing: all was kept from the first."""

BYTES_A_SCAN = 32 * 32


def panel(record: Record | None) -> Panel:
    """The panel; a run's D, C and workers set its sliders, and its step lies on it, and what its ranks got of the store."""
    step = mean_waits(record.run) if record is not None else None
    if record is None or step is None:
        return PANEL
    run, config = record.run, record.config
    workers, kept = int(str(run.fact("workers", 0))), counted(run, "prepared", later=True) == 0
    prepare = NOTHING_MS if kept or not config["prep_ms"] else float(str(config["prep_ms"]))
    seconds = step.seconds + step.compute
    settings = {
        "prepare_ms": prepare,
        "compute_ms": rounded(max(NOTHING_MS, float(str(config["compute_ms"])) or step.compute * 1e3)),
        "workers": min(64, workers),
        "ranks": run.world_size,
        "batch_mb": rounded(int(str(config["batch"])) * BYTES_A_SCAN * int(str(config["scan"])) ** 2 / 1e6),
    }
    points = [(0, point(record, "your step", float(workers), seconds * 1e3))]
    rates = store_rates(run) if run.fact("source") == "store" else None
    if rates is not None:
        settings["store_mb_per_s"] = float(str(config["store_mbit"])) / 8
        points.append((1, point(record, "a rank got", float(run.world_size), float(rates.mean()) / 1e6, over_link=True)))
    said = (
        f"A step of your run took {time_said(seconds)} with {workers} workers, {time_said(step.seconds)} of it waiting for "
        f"data ({record.provenance.source})."
        + (" Its later epochs prepared nothing: the samples were kept." if kept else "")
    )
    return PANEL.with_measured(Measured(settings=settings, points=tuple(points), said=said))
