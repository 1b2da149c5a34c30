"""The epochs of a run, and what was read in each: all of them, in one walk over the steps. Pure; no torch, no I/O."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...record.columns import DIGEST, ID, NOT_HASHED, Samples, samples_of
from ...record.once import once
from ...record.schema import RankLog, Run
from .apart import told_apart_by
from .batches import Batches, distinct, equal_steps, grouped
from .epoch_reads import Key, Reads
from .keeping import Keeping

ENDLESS = 1.5
"""An epoch that no loader ended, and in which ranks read this many times the data, is a run that counts no epochs."""

FEW = 20
"""Samples of which a rank's second pass may by chance read none that its first one read."""

STRETCHES = 4
"""Stretches for each pass over the data, where a run counts no epochs: most hold no border between two passes."""


@dataclass(frozen=True)
class Epoch:
    """What was read in one epoch.

    Attributes:
        whole: all of it.
        parts: by loader, where several were read one after the other or in turn; by stretch, where the run counts no
            epochs; else all of it.
    """

    whole: Reads
    parts: tuple[Reads, ...]


def epochs(run: Run, name: str = "train") -> list[int]:
    """Epochs in which samples of this name were recorded."""
    return distinct(np.concatenate([samples.epoch for samples in _samples(run, name)])).tolist()


def model_parallel_groups(run: Run) -> list[list[RankLog]]:
    """Ranks by the share of the data that each was to read: one list for each share.

    A rank has a share of its own unless the program declared `data_rank`, as it does where a group of ranks holds one model
    together (tensor, pipeline or context parallelism) and is to read the same.
    """
    shares: dict[object, list[RankLog]] = {}
    for log in run.ranks:
        shares.setdefault(log.head.facts.get("data_rank", ("rank", log.head.rank)), []).append(log)
    return list(shares.values())


def every_epoch(run: Run, name: str = "train") -> tuple[Epoch, ...]:
    """What every rank read in each epoch; by ids, where all steps have them and nothing contradicts them.

    Of ranks that share a `data_rank` the first stands for all: see `model_parallel_groups`. A run is looked through once,
    and what was found is kept with it.
    """
    return once(run, f"every_epoch {name}", lambda: _every_epoch(run, name))


def reads(run: Run, epoch: int, key: Key | None = None, name: str = "train") -> Reads:
    """What every rank read in one epoch; as `every_epoch` has it, unless `key` says by what samples are told apart."""
    if key is None:
        found = next((one.whole for one in every_epoch(run, name) if one.whole.epoch == epoch), None)
        return found or Reads(epoch, "id", tuple(Batches.none(ID) for _ in model_parallel_groups(run)), False)
    ranks = [_OfRank(samples, key) for samples in _of_shares(run, name)]
    complete = _Ends(run, [share[0] for share in model_parallel_groups(run)], name).whole(epoch, ranks)
    return Reads(epoch, key, tuple(rank.of_epoch(epoch) for rank in ranks), complete)


def first_epoch(run: Run, key: Key | None = None, name: str = "train") -> Reads | None:
    """The first epoch, or None if no samples were recorded."""
    found = epochs(run, name)
    return reads(run, found[0], key, name) if found else None


def dataset_size(run: Run) -> int | None:
    """The size N of the data that an epoch should cover, if the program declared it."""
    size = run.fact("dataset_size")
    return int(size) if isinstance(size, (int, float)) and size > 0 else None


def different_samples(run: Run, name: str = "train") -> int:
    """How many samples a run read that differ in content, over all epochs and ranks."""
    return once(run, f"different_samples {name}", lambda: _different_samples(run, name))


def ranks_off_their_group(run: Run, name: str = "train") -> list[tuple[RankLog, int]]:
    """Ranks that do not read, step by step, what the first rank of their own share reads, and in which epoch that begins."""
    found = []
    for first, *others in model_parallel_groups(run):
        for log in others:
            own, model = _of_log(log, name), _of_log(first, name)
            apart = np.flatnonzero(~_reads_the_same(own, model))
            found += [(log, int(own.epoch[apart[0]]))] if len(apart) else []
    return found


def _reads_the_same(own: Samples, model: Samples) -> np.ndarray:
    """[steps that both have] whether two ranks read the same: by ids where the step has them, else by contents."""
    count = min(len(own), len(model))
    by_id = equal_steps(Batches(own.ids, own.id_starts), Batches(model.ids, model.id_starts))[:count]
    by_content = equal_steps(Batches(own.digests, own.starts), Batches(model.digests, model.starts))[:count]
    nothing = (np.diff(own.starts)[:count] == 0) & (np.diff(model.starts)[:count] == 0)
    both = own.has_ids[:count] & model.has_ids[:count]
    neither = ~own.has_ids[:count] & ~model.has_ids[:count]
    return (both & by_id) | (neither & by_content) | (~both & ~neither & nothing)


def _samples(run: Run, name: str) -> list[Samples]:
    """By rank: what it read under a name."""
    return [_of_log(log, name) for log in run.ranks]


def _of_log(log: RankLog, name: str) -> Samples:
    return once(log, f"samples {name}", lambda: samples_of(log.steps, name))


def _of_shares(run: Run, name: str) -> list[Samples]:
    """The same of the first rank of each share."""
    return [_of_log(share[0], name) for share in model_parallel_groups(run)]


def _different_samples(run: Run, name: str) -> int:
    """Epoch by epoch, so that no more than the data set and what one epoch reads are held at a time."""
    known = np.empty(0, DIGEST)
    ranks = [_OfRank(samples, "digest") for samples in _samples(run, name)]
    for epoch in epochs(run, name):
        read = distinct(np.concatenate([rank.of_epoch(epoch).keys for rank in ranks]))
        read = read[read != NOT_HASHED]
        known = read if not len(known) or np.array_equal(read, known) else distinct(np.concatenate([known, read]))
    return len(known)


class _OfRank:
    """What one rank read, by epoch and by loader."""

    def __init__(self, samples: Samples, key: Key) -> None:
        keys, starts = (samples.ids, samples.id_starts) if key == "id" else (samples.digests, samples.starts)
        self._all, self._loader = Batches(keys, starts), samples.loader
        self._places = {epoch: places for (epoch,), places in grouped(samples.epoch)}
        self._passes = {(epoch, 0): places for epoch, places in self._places.items()}
        if samples.loader.any():
            self._passes = {(epoch, loader): at for (epoch, loader), at in grouped(samples.epoch, samples.loader)}

    @property
    def passes(self) -> Iterable[tuple[int, int]]:
        """Each epoch and loader of which something was read."""
        return self._passes

    def of_epoch(self, epoch: int) -> Batches:
        return self._all.taken(self._places.get(epoch, _NO_PLACES))

    def of_loader(self, epoch: int, loader: int) -> Batches:
        return self._all.taken(self._passes.get((epoch, loader), _NO_PLACES))

    def loaders(self, epoch: int) -> set[int]:
        """Which loaders were read in an epoch."""
        return set(distinct(self._loader[self._places.get(epoch, _NO_PLACES)]).tolist())


_NO_PLACES = np.empty(0, np.int64)


def _every_epoch(run: Run, name: str) -> tuple[Epoch, ...]:
    samples = _of_shares(run, name)
    if not any(map(len, samples)):
        return ()
    key, doubtful = told_apart_by(samples)
    size, ends = dataset_size(run), _Ends(run, [share[0] for share in model_parallel_groups(run)], name)
    known = {
        "doubtful": doubtful,
        "all_differ": key == "digest" and size == different_samples(run, name),
        "keeping": Keeping(),
    }
    ranks = [_OfRank(of_rank, key) for of_rank in samples]
    found = []
    for epoch, loaders in itertools.groupby(sorted({one for rank in ranks for one in rank.passes}), lambda at: at[0]):
        whole = Reads(epoch, key, tuple(rank.of_epoch(epoch) for rank in ranks), ends.whole(epoch, ranks), **known)
        if key == "digest" and any((of_rank.keys == NOT_HASHED).any() for of_rank in whole.batches):
            continue  # by ids alone, and these do not tell
        numbers = [loader for _, loader in loaders]
        parts = [whole]
        if len(numbers) > 1:
            parts = [
                Reads(
                    epoch,
                    key,
                    tuple(rank.of_loader(epoch, number) for rank in ranks),
                    ends.of(epoch, number),
                    part=number,
                    **known,
                )
                for number in numbers
            ]
        found.append(Epoch(whole, tuple(parts)))
    if len(found) == 1 and len(found[0].parts) == 1 and size is not None and not ends.any:
        whole = found[0].whole
        if _runs_on(whole, size):
            return (Epoch(whole, _stretches(whole, size)),)
    return tuple(found)


def _runs_on(whole: Reads, size: int) -> bool:
    """Whether an epoch that no loader ended holds several passes over the data.

    Ranks that each read all of the data once, or all the same, read as much in one pass.
    """
    if whole.total <= ENDLESS * size or whole.sizes.max() > size:
        return False  # short; or one step reads more than there is: it is filled up
    one_pass = (whole.within_ranks == 0 and size >= FEW) or (whole.identical_steps >= 0.9 and whole.unique > 1)
    return not one_pass


def _stretches(whole: Reads, size: int) -> tuple[Reads, ...]:
    """An endless epoch in pieces of equally many steps, each of about a quarter of the data."""
    steps = max(len(of_rank) for of_rank in whole.batches)
    length = max(1, round(size / STRETCHES / (whole.total / steps)))
    return tuple(
        replace(whole, batches=tuple(of_rank[start : start + length] for of_rank in whole.batches), part=part, stretch=True)
        for part, start in enumerate(range(0, steps, length))
    )


class _Ends:
    """Which passes came to their ends, on every rank."""

    def __init__(self, run: Run, logs: Sequence[RankLog], name: str) -> None:
        self._resumed = [_went_on_in(run, log) for log in logs]
        self._ended = [
            {
                (event.fields.get("epoch"), event.fields.get("loader", 0))
                for event in log.events
                if event.name == "epoch_end" and event.fields.get("of", name) == name
            }
            for log in logs
        ]
        self.any = any(self._ended)

    def of(self, epoch: int, loader: int) -> bool:
        """Whether a loader was read to its end."""
        return all((epoch, loader) in ended for ended in self._ended) and epoch not in self._resumed

    def whole(self, epoch: int, ranks: Iterable[_OfRank]) -> bool:
        """Whether all loaders of an epoch were."""
        read = set().union(*(rank.loaders(epoch) for rank in ranks)) or {0}
        return all(self.of(epoch, loader) for loader in read)


def _went_on_in(run: Run, log: RankLog) -> int | None:
    """The epoch within which the run went on from a checkpoint: what it read of it before that is not in this log.

    Where the attempt before left its steps, these say whether the epoch had begun; else it may have.
    """
    if not log.steps or log.steps[0].step == 0:
        return None
    first = log.steps[0]
    own = [earlier.steps for logs in run.earlier for earlier in logs if earlier.head.rank == log.head.rank]
    before = [step for steps in own for step in steps if step.step < first.step]
    return first.epoch if not before or any(step.epoch == first.epoch for step in before) else None
