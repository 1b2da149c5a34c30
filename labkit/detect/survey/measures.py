"""The measures of a survey, in units that suit them, and what of them holds on every machine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...record.baseline import GIGA, MICRO, quantities
from ...record.quantity import Quantity
from ...record.roles import Role
from ...record.schema import Record, Source
from ...theory.ceilings import LinkFit
from .baseline import baseline_of
from .repeats import link_fit, operations


def survey_measures(record: Record) -> dict[str, Quantity]:
    """The measures of a survey's record, by name, each followed by its spread where it has one."""
    baseline = baseline_of(record)
    if baseline is None:
        fit = link_fit(record)
        return {} if fit is None else _link_alone(fit, record.link_source)
    found: dict[str, Quantity] = {}
    for name, quantity in quantities(baseline).items():
        found[name] = replace(quantity, source=record.link_source) if name.startswith("link_") else quantity
        if name in baseline.spread:
            found[f"{name}_spread"] = Quantity(baseline.spread[name], "of the median repeat")
    if baseline.link_residual_max is not None:
        found["link_residual_max"] = Quantity(baseline.link_residual_max, "x the measured time", record.link_source)
    if baseline.storage_cache:
        found["storage_cache"] = Quantity(baseline.storage_cache)
    return found


def _link_alone(fit: LinkFit, source: Source | None) -> dict[str, Quantity]:
    found = {"link_latency": Quantity(fit.alpha_s / MICRO, "µs a step", source)}
    if fit.bytes_per_s:
        found["link_bandwidth"] = Quantity(fit.bytes_per_s / GIGA, "GB/s", source)
    return found | {"link_residual_max": Quantity(fit.residual_max, "x the measured time", source)}


def invariants(record: Record) -> list[str]:
    """What holds of a survey on every machine: which measures there are, their units, and the orders that must hold."""
    found = survey_measures(record)
    lines = [f"  {name}: {found[name].unit}" for name in found if "_spread" not in name and found[name].unit]
    lines = [line for line in lines if "tf32" not in line]  # where the device has it
    rates = [quantity.value for quantity in found.values() if isinstance(quantity.value, float)]
    facts = {"every number is finite and not negative": all(np.isfinite(rate) and rate >= 0 for rate in rates)}
    fit, storage = link_fit(record), operations(record.runs.get(Role.STORAGE))
    if fit is not None:
        facts["the largest message takes longer than the smallest"] = bool(fit.measured_s[-1] > fit.measured_s[0])
        within = np.abs(fit.predicted_s / fit.measured_s - 1) <= fit.residual_max + 1e-9
        facts["the fit meets each point within its own residual"] = bool(within.all())
    if storage:
        one_by_one = storage["read-random"].num_bytes / storage["read-random"].timing.median_s
        facts["reading in order is faster than at random"] = storage["read-sequential"].bytes_per_s > one_by_one
    return lines + [f"  {fact}: {'yes' if holds else 'no'}" for fact, holds in facts.items()]
