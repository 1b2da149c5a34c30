"""Arrays and numbers out of records: what was read, by whom, in which order, at what cost. Pure; no torch, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from .epochs import dataset_size, different_samples, epochs, every_epoch, first_epoch, reads, sharers, strangers
from .measures_leak import validation_leak
from .orders import order_repeats
from .quantity import Quantity
from .reads import Key, Reads
from .schema import RankLog, Record, Run, Span, Step

__all__ = [  # what is asked of here and made elsewhere
    "Key",
    "Quantity",
    "Reads",
    "dataset_size",
    "different_samples",
    "epochs",
    "every_epoch",
    "first_epoch",
    "order_repeats",
    "reads",
    "sharers",
    "strangers",
]


def names_of(records: Sequence[Record]) -> list[str]:
    """A name for each record: its variant, with the settings in which records of one variant differ.

    What was run beside a record (`compare`) is no part of its name.
    """
    names = []
    for record in records:
        twins = [other for other in records if other.variant == record.variant]
        facts = [{**twin.config, "ranks": twin.run.world_size, "seed": twin.provenance.seed} for twin in twins]
        own = {**record.config, "ranks": record.run.world_size, "seed": record.provenance.seed}
        own.pop("compare", None)
        differing = [f"{key} {value}" for key, value in own.items() if any(fact.get(key) != value for fact in facts)]
        names.append(record.variant + (f" ({', '.join(differing)})" if differing else ""))
    return names


def train_steps(log: RankLog) -> tuple[Step, ...]:
    """A rank's steps but those of a pass of something else, such as validation, that was read through `probe.batches`."""
    if not any("train" in step.digests for step in log.steps):
        return log.steps
    return tuple(step for step in log.steps if not step.digests or "train" in step.digests)


def sampler_padding(num_samples: int, world_size: int) -> int:
    """Samples that a distributed sampler repeats so that every rank gets equally many: ceil(N/W)·W - N."""
    return -num_samples % world_size


def filling(seen: Reads, num_samples: int | None) -> int:
    """Repeated reads by which a loader filled its last global batch up from the start of the epoch; 0 where it did not.

    Then the last of several global batches is full, all reads before it are of different samples, and every sample was
    read.
    """
    if num_samples is None or len(seen.global_batches) < 2 or seen.unique != num_samples:
        return 0
    surplus, before = seen.total - num_samples, np.concatenate(seen.global_batches[:-1])
    fills = 0 < surplus < len(seen.global_batches[-1]) and seen.full_steps[-1] and len(np.unique(before)) == len(before)
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
    """Unique share of a global batch when each rank shuffles all N samples for itself: N(1-(1-B/N)^W)/(W·B)."""
    batch = min(batch, num_samples)
    return num_samples * (1 - (1 - batch / num_samples) ** world_size) / (world_size * batch)


def union_ns(spans: Iterable[Span]) -> int:
    """Length of the union of intervals: spans that queue or overlap are not counted twice."""
    total, reach = 0, None
    for start, end in sorted((span.start_ns, span.end_ns) for span in spans):
        if reach is None or start > reach:
            total, reach = total + end - start, end
        elif end > reach:
            total, reach = total + end - reach, end
    return total


def lane_shares(log: RankLog) -> dict[str, float]:
    """Share of a rank's time in steps that each lane covers. Lanes may overlap, so the sum may exceed 1."""
    elapsed = sum(step.end_ns - step.start_ns for step in log.steps)
    lanes = sorted({span.lane for step in log.steps for span in step.spans})
    return {lane: sum(union_ns(s for s in step.spans if s.lane == lane) for step in log.steps) / elapsed for lane in lanes}


def comm_share(run: Run) -> float | None:
    """Share of the steps' time in which a collective was under way, mean over ranks; None where none was timed."""
    shares = [lane_shares(log).get("comm") for log in run.ranks if log.steps]
    known = [share for share in shares if share is not None]
    return float(np.mean(known)) if known else None


def weights_gap(run: Run, reference: Run) -> float | None:
    """Relative distance |w - w_ref| / |w_ref| (Euclidean) of the final weights; None where either is missing."""
    own, other = run.arrays.get("weights"), reference.arrays.get("weights")
    if own is None or other is None or own.shape != other.shape:
        return None
    return float(np.linalg.norm(own - other) / np.linalg.norm(other))


def weights_equal(run: Run, reference: Run) -> bool | None:
    """Whether the final weights are equal to the bit, by their hashes; None where either is missing."""
    hashes = [log.digests.get("weights") for log in (*run.ranks, *reference.ranks)]
    return None if None in hashes else len(set(hashes)) == 1


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
    if "single" in record.runs:
        gap, equal = weights_gap(run, record.runs["single"]), weights_equal(run, record.runs["single"])
        if gap is not None:
            found["weights_gap_to_single"] = Quantity(gap, "relative")
        if equal is not None:
            found["weights_equal_single"] = Quantity(equal)
    return found
