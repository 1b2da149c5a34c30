"""The roof and MFU under the finger, with what a run reached."""

from __future__ import annotations

from ...detect.utilisation.measures import ceiling, declares_flops, flops_by_convention, tokens_per_second, utilisation
from ...record.schema import Record
from ...theory.panel import Measured, Panel
from ...theory.panels.roofline import PANEL
from ..on_the_curve import point, rounded


def panel(record: Record | None) -> Panel:
    """The panel; a record's ceiling, work and speed set its sliders, and its MFU lies on it."""
    if record is None or not declares_flops(record.run):
        return PANEL
    best, tokens, reached = ceiling(record), tokens_per_second(record.run), utilisation(record)
    if best is None or tokens is None or reached is None:
        return PANEL
    settings: dict[str, object] = {
        "peak_tflops": rounded(best.flops_per_s / 1e12),
        "gflop_a_token": rounded(flops_by_convention(record.run)["attention"] / 1e9),
        "tokens_per_s": rounded(tokens),
        "dtype": "fp32" if record.run.fact("precision") == "fp32" else "bf16 or fp16",
    }
    if record.baseline is not None:
        settings["gb_per_s"] = rounded(record.baseline.copy_bytes_per_s / 1e9)
    said = f"Your run reached {reached:.1%} of the rate of the {best.said} ({record.provenance.source})."
    return PANEL.with_measured(Measured(settings=settings, points=((1, point(record, "MFU", tokens, reached)),), said=said))
