"""Arrays and numbers out of records: what was read, by whom, in which order, at what cost. Pure; no torch, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from .measures_leak import validation_leak
from .schema import RankLog, Record, Run, Span, Step

Key = Literal["id", "digest"]


@dataclass(frozen=True)
class Quantity:
    """A value with its unit, and its source where that differs from the record's."""

    value: float | int | bool | str
    unit: str = ""
    source: str | None = None

    def __str__(self) -> str:
        if isinstance(self.value, bool):
            return "yes" if self.value else "no"
        if isinstance(self.value, int):
            text = f"{self.value:,}"
        elif isinstance(self.value, float):
            text = f"{self.value:.1%}" if self.unit.startswith("of ") else f"{self.value:.4g}"
        else:
            text = self.value
        return f"{text} {self.unit}".rstrip()

    @property
    def said(self) -> str:
        """As text, with its source where that differs from the record's."""
        return f"{self} ({self.source})" if self.source else str(self)


@dataclass(frozen=True)
class Reads:
    """What every rank read in one epoch.

    Attributes:
        epoch: which.
        key: whether samples are told apart by their ids or by a hash of their content.
        batches: by rank, by step: an array of keys in the order in which they were read.
        complete: every rank reached the end of the epoch.
    """

    epoch: int
    key: Key
    batches: tuple[tuple[np.ndarray, ...], ...]
    complete: bool

    @property
    def world_size(self) -> int:
        return len(self.batches)

    @cached_property
    def of_rank(self) -> tuple[np.ndarray, ...]:
        """All keys that each rank read, in order."""
        dtype = np.int64 if self.key == "id" else np.uint64  # the two together would become float64
        return tuple(np.concatenate(b) if b else np.empty(0, dtype) for b in self.batches)

    @cached_property
    def all_keys(self) -> np.ndarray:
        return np.concatenate(self.of_rank)

    @property
    def total(self) -> int:
        """Samples processed, by all ranks together."""
        return len(self.all_keys)

    @cached_property
    def copies(self) -> tuple[np.ndarray, np.ndarray]:
        """(keys, how often each was read by all ranks together)."""
        return np.unique(self.all_keys, return_counts=True)

    @property
    def unique(self) -> int:
        """Different samples read by all ranks together."""
        return len(self.copies[0])

    @cached_property
    def ranks_reading(self) -> np.ndarray:
        """For each key of `copies`, by how many ranks it was read."""
        own = [np.unique(keys) for keys in self.of_rank]
        return np.unique(np.concatenate(own), return_counts=True)[1]

    @property
    def across_ranks(self) -> int:
        """Reads of a sample that another rank had read or would read: sum over samples of (ranks reading it - 1)."""
        return int((self.ranks_reading - 1).sum())

    @property
    def repeats_of_shared(self) -> int:
        """Repeated reads, by any rank, of the samples that several ranks read."""
        return int((self.copies[1] - 1)[self.ranks_reading > 1].sum())

    @cached_property
    def within_ranks(self) -> int:
        """Reads of a sample that the same rank read before in this epoch."""
        return sum(len(keys) - len(np.unique(keys)) for keys in self.of_rank)

    @cached_property
    def even_repeats(self) -> int | None:
        """How often a rank reads each of its samples, if (99 % of) all samples equally often; None otherwise."""
        counts = np.concatenate([np.unique(keys, return_counts=True)[1] for keys in self.of_rank])
        usual = int(np.median(counts)) if len(counts) else 0
        return usual if usual and (counts == usual).mean() >= 0.99 and (usual > 1 or self.within_ranks == 0) else None

    @cached_property
    def global_batches(self) -> tuple[np.ndarray, ...]:
        """By step: the keys of all ranks together."""
        steps = max((len(b) for b in self.batches), default=0)
        return tuple(np.concatenate([b[step] for b in self.batches if step < len(b)]) for step in range(steps))

    @cached_property
    def unique_shares(self) -> np.ndarray:
        """By step: different samples of the global batch / its samples."""
        return np.array([len(np.unique(keys)) / len(keys) for keys in self.global_batches if len(keys)])

    @cached_property
    def full_steps(self) -> np.ndarray:
        """By step: whether every rank had a batch of the full size (all are full where none is larger)."""
        largest = max((len(keys) for b in self.batches for keys in b), default=0)
        return np.array(
            [
                all(step < len(b) and len(b[step]) == largest for b in self.batches)
                for step in range(len(self.global_batches))
            ]
        )

    @property
    def unique_share_of_global_batch(self) -> float:
        """Mean over the steps with full batches (over all, where none is full)."""
        shares = self.unique_shares
        full = self.full_steps[: len(shares)]
        return float(shares[full].mean() if full.any() else shares.mean())

    @property
    def one_batch(self) -> bool:
        """Whether each rank read, at every step (of at least 3), the same batch of different samples."""
        return bool(self.batches) and all(
            len(b) >= 3 and len(np.unique(b[0])) > 1 and all(np.array_equal(np.sort(b[0]), np.sort(keys)) for keys in b[1:])
            for b in self.batches
        )

    @cached_property
    def identical_steps(self) -> float:
        """Share of steps in which all ranks read the same samples in the same order."""
        same = [
            all(step < len(b) and np.array_equal(b[step], self.batches[0][step]) for b in self.batches)
            for step in range(len(self.global_batches))
        ]
        return sum(same) / len(same) if same and self.world_size > 1 else 0.0

    @cached_property
    def twins(self) -> list[tuple[int, ...]]:
        """Groups of ranks, but not all ranks, that read the same samples in the same order at every step (of at least 3)."""
        groups: dict[tuple[bytes, ...], list[int]] = {}
        for rank, of_rank in enumerate(self.batches):
            groups.setdefault(tuple(keys.tobytes() for keys in of_rank), []).append(rank)
        found = [tuple(group) for read, group in groups.items() if len(group) > 1 and len(read) >= 3]
        return [] if len(groups) == 1 else found


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


def epochs(run: Run, name: str = "train") -> list[int]:
    """Epochs in which samples of this name were recorded."""
    return sorted({step.epoch for log in run.ranks for step in log.steps if name in step.digests})


def sharers(run: Run) -> list[list[RankLog]]:
    """Ranks by the share of the data that each was to read: one list a share.

    A rank has a share of its own unless the program declared `data_rank`, as it does where a group of ranks holds one model
    together (tensor, pipeline or context parallelism) and is to read the same.
    """
    shares: dict[object, list[RankLog]] = {}
    for log in run.ranks:
        shares.setdefault(log.head.facts.get("data_rank", ("rank", log.head.rank)), []).append(log)
    return list(shares.values())


def reads(run: Run, epoch: int, key: Key | None = None, name: str = "train") -> Reads:
    """What every rank read in an epoch; by ids where all steps have them, unless `key` says otherwise.

    Of ranks that share a `data_rank` the first stands for all: see `sharers`.
    """
    logs = [share[0] for share in sharers(run)]
    steps = [[s for s in log.steps if s.epoch == epoch and name in s.digests] for log in logs]
    if key is None:
        key = "id" if all(name in s.ids for of_rank in steps for s in of_rank) else "digest"
    pick: Callable = (lambda s: s.ids[name]) if key == "id" else (lambda s: s.digests[name])
    dtype = np.int64 if key == "id" else np.uint64
    batches = tuple(tuple(np.array(pick(s), dtype) for s in of_rank) for of_rank in steps)
    whole = all(_ended(log, epoch, name) and not _went_on_in(run, log, epoch) for log in logs)
    return Reads(epoch, key, batches, whole)


def strangers(run: Run, name: str = "train") -> list[RankLog]:
    """Ranks that do not read, step by step, what the first rank of their own share reads."""

    def read(log: RankLog) -> list[tuple[int, ...]]:
        return [tuple((step.ids if name in step.ids else step.digests)[name]) for step in log.steps if name in step.digests]

    found = []
    for first, *others in sharers(run):
        found += [log for log in others if any(a != b for a, b in zip(read(log), read(first), strict=False))]
    return found


def first_epoch(run: Run, key: Key | None = None, name: str = "train") -> Reads | None:
    """The first epoch, or None if no samples were recorded."""
    found = epochs(run, name)
    return reads(run, found[0], key, name) if found else None


def train_steps(log: RankLog) -> tuple[Step, ...]:
    """A rank's steps but those of a pass of something else, such as validation, that was read through `probe.batches`."""
    if not any("train" in step.digests for step in log.steps):
        return log.steps
    return tuple(step for step in log.steps if not step.digests or "train" in step.digests)


def _ended(log: RankLog, epoch: int, name: str) -> bool:
    ends = [event.fields for event in log.events if event.name == "epoch_end"]
    return any(fields.get("epoch") == epoch and fields.get("of", name) == name for fields in ends)


def _went_on_in(run: Run, log: RankLog, epoch: int) -> bool:
    """Whether the run went on from a checkpoint within this epoch: what it read of it before that is not in this log.

    Where the attempt before left its steps, these say whether the epoch had begun; else it may have.
    """
    if not log.steps or log.steps[0].step == 0 or log.steps[0].epoch != epoch:
        return False
    own = [earlier.steps for logs in run.earlier for earlier in logs if earlier.head.rank == log.head.rank]
    before = [step for steps in own for step in steps if step.step < log.steps[0].step]
    return not before or any(step.epoch == epoch for step in before)


def dataset_size(run: Run) -> int | None:
    """The size N of the data that an epoch should cover, if the program declared it."""
    size = run.fact("dataset_size")
    return int(size) if isinstance(size, (int, float)) and size > 0 else None


def different_samples(run: Run, name: str = "train") -> int:
    """How many samples a run read that differ in content, over all epochs and ranks."""
    return len({digest for log in run.ranks for step in log.steps for digest in step.digests.get(name, ())})


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


def order_repeats(run: Run) -> bool | None:
    """Whether every rank read the second epoch in the order of the first; None with fewer than two epochs."""
    found = epochs(run)
    if len(found) < 2:
        return None
    return bool((same_order(reads(run, found[0]), reads(run, found[1])) == 1.0).all())


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


def clock_offsets(run: Run) -> np.ndarray:
    """By rank: nanoseconds to subtract from its times so that the common barrier is at 0 on every host."""
    return np.array([log.head.barrier_ns for log in run.ranks], dtype=np.int64)


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
