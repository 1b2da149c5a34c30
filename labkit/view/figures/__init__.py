"""The figures, by name. Each takes one or more records and gives a Picture; drawn from records alone."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from ...errors import UnknownName
from ..picture import Picture

FIGURES = {
    "who-read-what": "reads:who_read_what",
    "coverage": "reads:coverage_and_copies",
    "timeline": "reads:timeline",
    "loss": "reads:loss",
    "loss-beside-fp32": "precision:loss_beside_fp32",
    "gradient-range": "precision:gradient_range",
    "zeros-and-scale": "precision:zeros_and_scale",
    "precision-speed": "precision:precision_speed",
    "ladder": "mfu:ladder",
    "flops": "mfu:flops",
    "published": "mfu:published",
    "who-computed-on-what": "staleness:who_computed_on_what",
    "staleness": "staleness:staleness",
    "loss-both-ways": "staleness:loss_both_ways",
    "stability": "staleness:stability_chart",
    "compute-over-comm": "overlap:compute_over_comm",
    "compute-over-comm-run": "overlap:compute_over_comm_run",
    "exposure": "overlap:exposure_bars",
    "bucket-sweep": "overlap:bucket_sweep",
    "saw-tooth": "input:saw_tooth_by_rank",
    "data-beside-compute": "input:data_beside_compute",
    "speed-up": "input:speed_up_by_ranks",
    "store-rate": "input:store_rate",
    "memory-over-a-step": "zero:memory_over_a_step",
    "traffic-by-collective": "zero:traffic_by_collective",
    "step-on-two-links": "zero:step_on_two_links",
    "loss-beside-one": "zero:loss_beside_one",
    "crash-timeline": "crash:crash_timeline",
    "departure": "crash:departure",
    "ablation": "crash:ablation",
    "goodput": "goodput:goodput_against_interval",
    "roofline": "machine:roofline",
    "link": "machine:link",
    "bandwidths": "machine:bandwidths",
    "repeats": "machine:repeats",
}
"""Name -> module of this folder and function."""


def figure(name: str) -> Callable[..., Picture]:
    """The function that draws a figure.

    Raises:
        UnknownName: with the valid names.
    """
    if name not in FIGURES:
        raise UnknownName("figure", name, FIGURES)
    module, function = FIGURES[name].split(":")
    return getattr(importlib.import_module(f"{__name__}.{module}"), function)
