"""How often a published run was interrupted: quoted, from data/published."""

from __future__ import annotations

from ..errors import RecordError
from ..theory.reliability import gpu_hours_between
from .published import failures

_GPU_CAUSES = ("faulty GPU", "GPU HBM3", "GPU SRAM", "GPU system processor", "GPU thermal interface + sensor")


def quoted_gpu_hours(*, gpu_causes_alone: bool = False) -> float:
    """GPU-hours between unexpected interruptions of the Llama 3 run: 419 in 54 days on 16,384 GPUs (quoted).

    Args:
        gpu_causes_alone: count those of the GPU itself (chip, memory, cooling) and no others.
    """
    rows = [row for row in failures() if row.source == "Llama 3 paper" and row.measure == "interruptions"]
    causes = _GPU_CAUSES if gpu_causes_alone else ("unexpected",)
    counted = [row for row in rows if row.cause in causes]
    if len(counted) != len(causes):
        raise RecordError(f"data/published/failures.csv lacks a row of the Llama 3 paper: {', '.join(causes)}")
    one = counted[0]
    assert one.period_days is not None
    return gpu_hours_between(sum(row.value for row in counted), one.num_devices, one.period_days)
