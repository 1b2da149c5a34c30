"""The epochs of a run, and what was read in each: all of them, in one walk over the steps. Pure; no torch, no I/O."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...record.schema import RankLog, Run, Step
from .epoch_reads import Key, Reads

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
    return sorted({step.epoch for log in run.ranks for step in log.steps if name in step.digests})


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

    Of ranks that share a `data_rank` the first stands for all: see `model_parallel_groups`. A run is walked over once, and
    what was found is kept with it.
    """
    kept = vars(run).setdefault("every_epoch", {})
    if name not in kept:
        kept[name] = _every_epoch(run, name)
    return kept[name]


def reads(run: Run, epoch: int, key: Key | None = None, name: str = "train") -> Reads:
    """What every rank read in one epoch; as `every_epoch` has it, unless `key` says by what samples are told apart."""
    logs = _logs(run)
    if key is None:
        found = next((one.whole for one in every_epoch(run, name) if one.whole.epoch == epoch), None)
        return found or Reads(epoch, "id", tuple(() for _ in logs), False)
    steps = [[step for step in log.steps if step.epoch == epoch and name in step.digests] for log in logs]
    return replace(_read(steps, name, key), epoch=epoch, complete=_Ends(run, logs, name).whole(epoch, steps))


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
    return len(np.unique(_joined((step.digests.get(name, []) for log in run.ranks for step in log.steps), np.uint64)))


def ranks_off_their_group(run: Run, name: str = "train") -> list[tuple[RankLog, int]]:
    """Ranks that do not read, step by step, what the first rank of their own share reads, and in which epoch that begins."""

    def read(log: RankLog) -> list[tuple[int, list[int]]]:
        steps = (step for step in log.steps if name in step.digests)
        return [(step.epoch, (step.ids if name in step.ids else step.digests)[name]) for step in steps]

    found = []
    for first, *others in model_parallel_groups(run):
        for log in others:
            pairs = zip(read(log), read(first), strict=False)
            apart = next((epoch for (epoch, own), (_, other) in pairs if own != other), None)
            found += [] if apart is None else [(log, apart)]
    return found


def _logs(run: Run) -> list[RankLog]:
    return [share[0] for share in model_parallel_groups(run)]


def _every_epoch(run: Run, name: str) -> tuple[Epoch, ...]:
    logs = _logs(run)
    recorded = [[step for step in log.steps if name in step.digests] for log in logs]
    if not any(recorded):
        return ()
    key, doubtful = _told_apart_by(recorded, name)
    size, ends = dataset_size(run), _Ends(run, logs, name)
    known = {"doubtful": doubtful, "all_differ": key == "digest" and size == different_samples(run, name)}
    passes = [_grouped(steps, lambda step: (step.epoch, step.loader)) for steps in recorded]
    by_epoch = [_grouped(steps, lambda step: (step.epoch,)) for steps in recorded]
    found = []
    for epoch, loaders in itertools.groupby(sorted(set().union(*passes)), lambda at: at[0]):
        of_ranks = [of_rank.get((epoch,), []) for of_rank in by_epoch]
        whole = replace(_read(of_ranks, name, key), epoch=epoch, complete=ends.whole(epoch, of_ranks), **known)
        numbers = [loader for _, loader in loaders]
        parts = [whole]
        if len(numbers) > 1:
            parts = [
                replace(
                    _read([of_rank.get((epoch, number), []) for of_rank in passes], name, key),
                    epoch=epoch,
                    complete=ends.of(epoch, number),
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


def _read(of_ranks: Sequence[Sequence[Step]], name: str, key: Key) -> Reads:
    """The keys of some steps, by rank; epoch and completeness are for the caller to say."""
    dtype = np.int64 if key == "id" else np.uint64
    pick: Callable[[Step], list[int]] = (lambda s: s.ids[name]) if key == "id" else (lambda s: s.digests[name])
    return Reads(0, key, tuple(tuple(np.array(pick(step), dtype) for step in steps) for steps in of_ranks), False)


def _runs_on(whole: Reads, size: int) -> bool:
    """Whether an epoch that no loader ended holds several passes over the data.

    Ranks that each read all of the data once, or all the same, read as much in one pass.
    """
    if max(len(keys) for keys in whole.global_batches) > size:
        return False  # one step reads more than there is: it is filled up
    one_pass = (whole.within_ranks == 0 and size >= FEW) or (whole.identical_steps >= 0.9 and whole.unique > 1)
    return whole.total > ENDLESS * size and not one_pass


def _stretches(whole: Reads, size: int) -> tuple[Reads, ...]:
    """An endless epoch in pieces of equally many steps, each of about a quarter of the data."""
    steps = max(len(of_rank) for of_rank in whole.batches)
    length = max(1, round(size / STRETCHES / (whole.total / steps)))
    return tuple(
        replace(whole, batches=tuple(of_rank[start : start + length] for of_rank in whole.batches), part=part, stretch=True)
        for part, start in enumerate(range(0, steps, length))
    )


def _grouped(steps: Iterable[Step], by: Callable[[Step], tuple]) -> dict[tuple, list[Step]]:
    found: dict[tuple, list[Step]] = {}
    for step in steps:
        found.setdefault(by(step), []).append(step)
    return found


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

    def whole(self, epoch: int, of_ranks: Sequence[Sequence[Step]]) -> bool:
        """Whether all loaders of an epoch were."""
        read = {step.loader for steps in of_ranks for step in steps} or {0}
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


def _told_apart_by(recorded: Sequence[Sequence[Step]], name: str) -> tuple[Key, bool]:
    """By what samples are told apart, and whether ids and contents may contradict each other.

    Ids that number each rank's own part of the data from 0 stand for another sample on each rank: one content on a rank,
    whenever it is read, and another on the next. Where contents change from read to read nothing contradicts the ids.
    """
    steps = [step for of_rank in recorded for step in of_rank]
    if not all(name in step.ids and len(step.ids[name]) == len(step.digests[name]) for step in steps):
        return "digest", False
    ids = _joined((step.ids[name] for step in steps), np.int64)
    contents = _joined((step.digests[name] for step in steps), np.uint64)
    read = [sum(len(step.ids[name]) for step in of_rank) for of_rank in recorded]
    known, at = np.unique(ids, return_inverse=True)
    _, what = np.unique(contents, return_inverse=True)
    contents_of = np.bincount(_different(at, what)[0], minlength=len(known))
    if len(recorded) == 1 or not (contents_of > 1).any():
        return "id", False
    who = np.repeat(np.arange(len(recorded)), read)
    own = at * len(recorded) + who
    of_ranks = np.bincount(_different(at, who)[0], minlength=len(known))
    once_each = len(_different(own, what)[0]) == len(np.unique(own))
    shared = of_ranks > 1
    if not once_each or (contents_of[shared] > 1).mean() < 0.5:
        return "id", False
    return ("digest", False) if len(ids) >= 1.5 * len(np.unique(own)) else ("id", True)


def _different(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different pairs of two arrays of whole numbers from 0 on."""
    width = int(other.max(initial=0)) + 1
    pairs = np.unique(one.astype(np.int64) * width + other)
    return pairs // width, pairs % width


def _joined(lists: Iterable[list[int]], dtype: type) -> np.ndarray:
    return np.array(list(itertools.chain.from_iterable(lists)), dtype)
