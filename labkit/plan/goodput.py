"""What saves and failures cost, at a scale at which both belong together: measured, as given, or quoted. Pure; no torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..detect.crash.measures import crashes, saves
from ..errors import RecordError, UsageError
from ..facts.failures import quoted_gpu_hours
from ..facts.published import checkpoints
from ..facts.published_rows import CheckpointRow
from ..record.schema import Record
from ..theory.reliability import Costs, mtbf_hours
from ..words import duration

RESTART_S = 900.0
"""A restart of a cluster's job, from the failure to the next step: assumed, as nobody publishes one with its scale."""

QUOTED_SAVE = "BLOOM production"


@dataclass(frozen=True)
class CostsSaid:
    """What failures and saves cost, in seconds, and where each number is from.

    Attributes:
        costs: the three.
        said: them with their sources, as words.
    """

    costs: Costs
    said: str


def quoted_save() -> CheckpointRow:
    """The published save of a large run whose number of devices is known too: 40 s on 384 GPUs (quoted)."""
    row = next((row for row in checkpoints() if row.source == QUOTED_SAVE), None)
    if row is None or row.stall_s is None or row.num_devices is None:
        raise RecordError(f"data/published/checkpoints.csv lacks the save of {QUOTED_SAVE}, with its devices")
    return row


def costs_of(record: Record) -> CostsSaid:
    """What a record's way to save costs where failures come.

    With a mean time between failures of its own (`mtbf_s`) the record's saves and restart count as they were measured. A
    toy's milliseconds do not belong beside a cluster's failures: without one, a published run's save is taken, on as many
    GPUs as that run had, and of the record the share of a save for which training waits.

    Raises:
        UsageError: the record saves nothing.
    """
    run = record.run
    stalled = [save for save in saves(run) if save.stall_s > 0]
    if not stalled:
        raise UsageError(
            f"{record.variant} saves nothing, so there is no interval to choose; draw a variant that saves, or record each "
            "save with probe.event('save', of_step=…, stall_s=…)"
        )
    stall = float(np.median([save.stall_s for save in stalled]))
    given = float(str(run.fact("mtbf_s", 0.0)))
    if given:
        return _as_measured(stall, max((crash.restart_s for crash in crashes(run)), default=0.0), given)
    write = float(np.median([max(save.write_s, save.stall_s) for save in stalled]))
    return _at_a_published_scale(stall / write)


def _as_measured(stall: float, restart: float, mtbf: float) -> CostsSaid:
    again = f"restart {duration(restart)}" if restart else "no restart seen"
    said = f"save {duration(stall)}, {again} (measured, of this model), failure every {duration(mtbf)} (as given)"
    return CostsSaid(Costs(save=stall, restart=restart, mtbf=mtbf), said)


def _at_a_published_scale(share: float) -> CostsSaid:
    row = quoted_save()
    gpus, whole = row.num_devices, row.stall_s
    assert gpus is not None and whole is not None  # looked at there
    costs = Costs(save=share * whole, restart=RESTART_S, mtbf=3600 * mtbf_hours(quoted_gpu_hours(), gpus))
    said = (
        f"a save of {duration(whole)} on {gpus:,} GPUs (quoted: {row.source}), of which training waits for {share:.0%} "
        f"(measured here); restart {duration(costs.restart)} (assumed); failure every {duration(costs.mtbf)} (at the quoted "
        "rate of the Llama 3 paper)"
    )
    return CostsSaid(costs, said)
