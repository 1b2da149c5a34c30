"""Arrays and numbers out of records: what was read, by whom, in which order, at what cost. Pure; no torch, no I/O."""

from __future__ import annotations

import numpy as np

from ...record.quantity import Quantity
from ...record.roles import Role
from ...record.schema import Record
from ..runs import comm_share, weights_equal, weights_gap
from .batches import distinct
from .epoch_reads import Key, Reads
from .epochs import (
    dataset_size,
    different_samples,
    epochs,
    every_epoch,
    first_epoch,
    model_parallel_groups,
    ranks_off_their_group,
    reads,
)
from .leak import validation_leak
from .orders import order_repeats

__all__ = [  # what is asked of here and made elsewhere
    "Key",
    "Quantity",
    "Reads",
    "dataset_size",
    "different_samples",
    "epochs",
    "every_epoch",
    "first_epoch",
    "model_parallel_groups",
    "order_repeats",
    "ranks_off_their_group",
    "reads",
]


def sampler_padding(num_samples: int, world_size: int) -> int:
    """Samples that a distributed sampler repeats so that every rank gets equally many: ceil(N/W)·W - N.

    >>> sampler_padding(10, 4)  # 3 samples a rank, 12 in all
    2
    """
    return -num_samples % world_size


def only_the_last_step_repeats(seen: Reads) -> bool:
    """Whether all reads before the last step are of different samples."""
    if seen.unique == seen.total:
        return True
    before = seen.global_batches[:-1].keys
    return len(distinct(before)) == len(before)


def filling(seen: Reads, num_samples: int | None) -> int:
    """Repeated reads by which a loader filled its last global batch up from the start of the epoch; 0 where it did not.

    Then the last of several global batches is full, all reads before it are of different samples, and every sample was
    read.
    """
    if num_samples is None or len(seen.sizes) < 2 or seen.unique != num_samples:
        return 0
    surplus, last = seen.total - num_samples, int(seen.sizes[-1])
    fills = 0 < surplus < last and seen.full_steps[-1] and only_the_last_step_repeats(seen)
    return surplus if fills else 0


def padding(seen: Reads, num_samples: int | None) -> int:
    """Repeated reads that a sampler's padding explains; 0 where the number of reads shows that there was none."""
    if num_samples is None:
        return 0
    expected = sampler_padding(num_samples, seen.world_size)
    return seen.total - seen.unique if seen.total == num_samples + expected and seen.unique == num_samples else 0


def rank_overlap(seen: Reads, num_samples: int | None) -> float:
    """Share of the samples read that more than one rank read, padding left out."""
    shared = int((seen.ranks_reading > 1).sum())
    return max(0, shared - padding(seen, num_samples)) / seen.unique


def same_order(first: Reads, second: Reads) -> np.ndarray:
    """By rank: share of positions at which two epochs have the same sample."""
    shares = []
    for one, two in zip(first.of_rank, second.of_rank, strict=True):
        length = min(len(one), len(two))
        shares.append(float((one[:length] == two[:length]).mean()) if length else 0.0)
    return np.array(shares)


def expected_unique_share(num_samples: int, batch: int, world_size: int) -> float:
    """Unique share of a global batch when each rank shuffles all N samples for itself: N(1-(1-B/N)^W)/(W·B).

    >>> round(expected_unique_share(1000, 100, 4), 3)  # 344 different samples of 400
    0.86
    """
    batch = min(batch, num_samples)
    return num_samples * (1 - (1 - batch / num_samples) ** world_size) / (world_size * batch)


def data_measures(record: Record) -> dict[str, Quantity]:
    """The measures of what was read, by name, of the first epoch where an epoch is meant."""
    run = record.run
    seen = first_epoch(run)
    found: dict[str, Quantity] = {}
    if seen is not None and seen.total:
        size = dataset_size(run)
        found["samples_per_epoch"] = Quantity(seen.total, "samples")
        found["unique_samples"] = Quantity(seen.unique, "samples")
        if size is not None:
            found["coverage"] = Quantity(seen.unique / size, "of the data set")
        found["copies_max"] = Quantity(int(seen.copies[1].max()), "reads of one sample")
        found["padding"] = Quantity(padding(seen, size), "samples")
        found["unique_share_of_global_batch"] = Quantity(seen.unique_share_of_global_batch, "of its samples")
        repeats = order_repeats(run)
        if repeats is not None:
            found["order_repeats"] = Quantity(repeats)
        if run.world_size > 1:
            found["rank_overlap"] = Quantity(rank_overlap(seen, size), "of the samples read")
    leak = validation_leak(run)
    if leak is not None:
        found["val_leak"] = Quantity(leak.share, "of the validation samples")
    share = comm_share(run)
    if share is not None:
        found["comm_share"] = Quantity(share, "of step time", record.link_source)
    if Role.SINGLE in record.runs:
        gap, equal = weights_gap(run, record.runs[Role.SINGLE]), weights_equal(run, record.runs[Role.SINGLE])
        if gap is not None:
            found["weights_gap_to_single"] = Quantity(gap, "relative")
        if equal is not None:
            found["weights_equal_single"] = Quantity(equal)
    return found
