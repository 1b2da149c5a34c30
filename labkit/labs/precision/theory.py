"""Underflow under the finger, with the share of gradients that a run lost."""

from __future__ import annotations

import math

import numpy as np

from ...detect.precision.measures import excess, gradient_exponents, scaling, zero_shares
from ...record.roles import Role
from ...record.schema import Record
from ...theory.panel import Measured, Panel
from ...theory.panels.number_formats import PANEL
from ..on_the_curve import point, rounded


def panel(record: Record | None) -> Panel:
    """The panel; the sizes of fp32's gradients set its sliders, and the share that became 0 lies on it."""
    reference = record.runs.get(Role.REFERENCE) if record is not None else None
    sizes = gradient_exponents(reference) if reference is not None else None
    if record is None or reference is None or sizes is None:
        return PANEL
    lost = excess(zero_shares(record.run), zero_shares(reference))
    if lost is None:
        return PANEL
    middle, spread = _middle_and_spread(*sizes)
    scaler = scaling(record.run)
    power = round(math.log2(scaler.scale[-1])) if scaler is not None else 0
    settings = {"median": rounded(middle), "spread": rounded(max(0.1, spread)), "scale_power": min(32, max(0, power))}
    share = max(0.0, lost.share)
    said = (
        f"In your run {share:.0%} of the gradients that are not 0 in fp32 became 0 ({record.provenance.source}); the curve "
        "takes their sizes as log-normal, with fp32's middle and spread. On the way back, gradients of activations pass "
        "through fp16 as well, so a run can lose more than the sizes of the weights' gradients say."
    )
    at = (0, point(record, "became 0", float(settings["scale_power"]), share))
    return PANEL.with_measured(Measured(settings=settings, points=(at,), said=said))


def _middle_and_spread(powers: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """(size, decades): the geometric mean of what a histogram of powers of two holds, and its standard deviation."""
    tens = (powers + 0.5) * math.log10(2)
    mean = float(np.average(tens, weights=counts))
    return 10.0**mean, float(np.sqrt(np.average((tens - mean) ** 2, weights=counts)))
