"""The loss of a run, over the whole global batch. Pure; no torch, no I/O."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import UsageError
from ..record.schema import Run, Step

SMOOTHED = 5
"""Steps whose mean is drawn, and said, as the loss at a step."""


def smoothed(values: np.ndarray) -> np.ndarray:
    """By step: mean of the last SMOOTHED values, of fewer at the beginning; NaN where one of them is."""
    return np.array([values[max(0, at - SMOOTHED + 1) : at + 1].mean() for at in range(len(values))])


@dataclass(frozen=True)
class LossCurve:
    """Loss over the whole global batch, by step.

    Attributes:
        loss_global: mean of the ranks' losses, weighted by their samples.
        samples: samples processed by all ranks together, up to and with the step.
        time_s: seconds since the first step began on rank 0.
    """

    loss_global: np.ndarray
    samples: np.ndarray
    time_s: np.ndarray


def loss_curve(run: Run) -> LossCurve:
    """The run's loss against samples and against time, at the steps whose loss all ranks recorded.

    Raises:
        UsageError: there are steps, and no loss of them or not their samples; with what to record.
    """
    logs = [log.steps for log in run.ranks]
    count = min(len(steps) for steps in logs)
    told = [number for number in range(count) if all("loss_local" in steps[number].scalars for steps in logs)]
    if count and not told:
        raise UsageError(
            'no step has a loss on every rank; record it on each, within the step: probe.scalar("loss_local", loss.item())'
        )
    sizes = np.array([[_samples_of(s) for s in steps[:count]] for steps in logs])
    losses = np.array([[steps[number].scalar("loss_local") for number in told] for steps in logs])
    ends = np.array([logs[0][number].end_ns for number in told], dtype=np.int64)
    start = logs[0][0].start_ns if count else 0
    together = sizes.sum(0)
    if count and not together.all():
        raise UsageError(
            "a step is of 0 samples on all ranks, and its loss has no weight; leave such steps out, or record their number: "
            'probe.scalar("batch_samples", len(batch))'
        )
    return LossCurve(
        loss_global=(losses * sizes[:, told]).sum(0) / together[told],
        samples=together.cumsum()[told],
        time_s=(ends - start) / 1e9,
    )


def _samples_of(step: Step, name: str = "train") -> float:
    """How many samples a step trained on: as told, else as many as it read."""
    if "batch_samples" in step.scalars:
        return step.scalar("batch_samples")
    if name in step.digests:
        return float(len(step.digests[name]))
    raise UsageError(
        f"step {step.step} does not say of how many samples its loss is; read batches through probe.batches(loader), or "
        'record probe.scalar("batch_samples", len(batch))'
    )
