"""The measures of a record about precision, by name, with their units. Pure; no torch, no I/O."""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.roles import Role
from ...record.schema import Record, Run
from ..runs import weights_equal, weights_gap
from .measures import (
    final_loss,
    first_nonfinite,
    lost_shares,
    memory_of,
    never_moved,
    repeated_batches,
    scaling,
    speed,
    steps_of,
    zero_shares,
)


def precision_measures(record: Record) -> dict[str, Quantity]:
    """The measures of a run and of fp32 beside it, by name."""
    run, reference = record.run, record.runs.get(Role.REFERENCE)
    found = {"updates": Quantity(sum(step.counts.get("updates", 0) for step in steps_of(run)), "steps")}
    loss, loss_fp32 = final_loss(run), final_loss(reference) if reference else None
    if loss is not None:
        found["final_loss"] = Quantity(loss, "")
    if loss_fp32 is not None:
        found["final_loss_fp32"] = Quantity(loss_fp32, "")
    found |= _shares(
        "zero_gradients", zero_shares(run), zero_shares(reference) if reference else np.array([]), "of elements"
    )
    found |= _shares("lost_updates", lost_shares(run), lost_shares(reference) if reference else np.array([]), "of updates")
    for name, of in (("never_moved", run), ("never_moved_fp32", reference)):
        if of is not None and (still := never_moved(of)) is not None:
            found[name] = Quantity(still, "of weights")
    scaler = scaling(run)
    if scaler is not None:
        found["skipped_steps"] = Quantity(int(scaler.skipped.sum()), "steps")
        found["final_scale"] = Quantity(float(scaler.scale[-1]), "")
    bad = first_nonfinite(run)
    found["first_nonfinite_step"] = Quantity("none" if bad is None else f"{bad.step} ({bad.what})")
    again = repeated_batches(run)
    if again.pairs:
        found["loss_stands_still"] = Quantity(again.equal == again.pairs)
    found |= _memory(run)
    if reference is not None:
        equal, gap = weights_equal(run, reference), weights_gap(run, reference)
        if gap is not None:
            found["weights_gap_to_fp32"] = Quantity(gap, "relative")
        if equal is not None:
            found["weights_equal_fp32"] = Quantity(equal)
    times = speed(run)
    if times is not None:
        found["step_time"] = Quantity(float(np.median(times.own_s)) * 1e3, "ms")
        found["step_time_fp32"] = Quantity(float(np.median(times.fp32_s)) * 1e3, "ms")
        found["step_time_ratio_to_fp32"] = Quantity(float(np.median(times.ratios)), "x")
    return found


def _shares(name: str, own: np.ndarray, reference: np.ndarray, unit: str) -> dict[str, Quantity]:
    found = {}
    if len(own):
        found[name] = Quantity(float(own.mean()), unit)
    if len(reference):
        found[f"{name}_fp32"] = Quantity(float(reference.mean()), unit)
    return found


def _memory(run: Run) -> dict[str, Quantity]:
    return {name: Quantity(num_bytes, "bytes") for name, num_bytes in (memory_of(run) or {}).items()}
