"""Coverage under the finger, with what rank 0 of a run had seen after each epoch."""

from __future__ import annotations

import numpy as np

from ...detect.reads.batches import distinct
from ...detect.reads.epochs import dataset_size, every_epoch
from ...record.schema import Record
from ...theory.panel import Measured, Panel
from ...theory.panels.coverage import EPOCHS, PANEL
from ..on_the_curve import point


def panel(record: Record | None) -> Panel:
    """The panel; a record sets ranks and epochs, and what its rank 0 had seen after each epoch lies on it."""
    seen = _seen_by_rank_0(record) if record is not None else []
    if record is None or not seen:
        return PANEL
    last, ranks = min(len(seen), EPOCHS[-1]), record.run.world_size
    points = tuple(
        (0, point(record, "rank 0 had seen", float(epoch), share)) for epoch, share in enumerate(seen[:last], start=1)
    )
    said = f"Rank 0 of your run had seen {seen[last - 1]:.1%} of the data after {last} epochs ({record.provenance.source})."
    return PANEL.with_measured(Measured(settings={"ranks": ranks, "epochs": last}, points=points, said=said))


def _seen_by_rank_0(record: Record) -> list[float]:
    """After each epoch: the share of the data that rank 0 has seen so far; empty where that is not known."""
    size = dataset_size(record.run)
    found, so_far = [], []
    if size is None:
        return []
    for epoch in every_epoch(record.run):
        so_far.append(epoch.whole.of_rank[0])
        found.append(len(distinct(np.concatenate(so_far))) / size)
    return found
