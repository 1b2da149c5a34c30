"""Which data a loader reads: loaders that are made anew for each epoch over one data set are one stream of it.

A stream is a data set that is read from its begin to its end, again and again, by whichever loader. Two loaders that read
one data set at the same time are two streams.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Stream:
    """One stream of data.

    Attributes:
        number: in the order of first use.
        size: samples that one pass of all ranks together is to read; None where that cannot be told.
        base: what identifies the whole data set of which its indices are places; see `_base`.
        passes: that were begun.
        is_free: whether the last pass has ended, or its iterator is gone.
    """

    number: int
    size: int | None
    base: tuple[Any, ...]
    passes: int = 0
    is_free: Callable[[], bool] = lambda: True
    _keys: list[Any] = field(default_factory=list)
    _loader: Any = None

    def is_of(self, keys: list[Any]) -> bool:
        """Whether it reads this data."""
        return len(keys) == len(self._keys) and all(known() is key for known, key in zip(self._keys, keys, strict=True))

    def reads(self, loader: Any) -> bool:
        """Whether this loader read its last pass."""
        return self._loader is not None and self._loader() is loader


class Streams:
    """The streams of the process."""

    def __init__(self) -> None:
        self._every: list[Stream] = []

    def of(self, loader: Any) -> Stream:
        """The stream that a loader goes on with, as it begins a pass."""
        keys = _keys(loader)
        mine = [stream for stream in self._every if stream.is_of(keys)]
        found = next((stream for stream in mine if stream.reads(loader)), None)
        found = found or next((stream for stream in mine if stream.is_free()), None)
        if found is None:
            found = Stream(len(self._every), size_of(loader), _base(loader.dataset), _keys=[_held(key) for key in keys])
            self._every.append(found)
        found._loader = _held(loader)
        found.passes += 1
        return found


def _keys(loader: Any) -> list[Any]:
    """What tells one stream from another: the data set, and the part of it that a sampler draws from."""
    from torch.utils.data import SubsetRandomSampler

    return [loader.dataset, *([loader.sampler.indices] if isinstance(loader.sampler, SubsetRandomSampler) else [])]


def _held(one: Any) -> Callable[[], Any]:
    """A reference that keeps nothing alive, where the object can have one."""
    try:
        return weakref.ref(one)
    except TypeError:
        return lambda: one


def _base(dataset: Any) -> tuple[Any, ...]:
    """What two data sets share whose indices are places in one whole: the object, or for parts of two objects that may
    stand for one whole (one for training, one with other transforms) their class and length."""
    from torch.utils.data import Subset

    if not isinstance(dataset, Subset):
        return (id(dataset),)
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    try:
        return (id(dataset), type(dataset), len(dataset))  # pyright: ignore[reportArgumentType]
    except Exception:
        return (id(dataset),)


def all_of(loader: Any) -> int | None:
    """Which data set a loader draws all of; None where its sampler may draw a part."""
    from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler, SequentialSampler

    sampler = loader.batch_sampler.sampler if type(loader.batch_sampler) is BatchSampler else None
    return id(loader.dataset) if type(sampler) in (SequentialSampler, RandomSampler, DistributedSampler) else None


def in_one_whole(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether indices of two data sets, by their bases, are places in one whole."""
    return one[:1] == other[:1] or (len(one) > 1 and one[1:] == other[1:])


def size_of(loader: Any) -> int | None:
    """Samples of the data that all ranks together are to read in a pass; None where that cannot be told.

    A Subset that several ranks read without a sampler that knows of ranks may be the part of one of them, or of all. A
    sampler of the script's own may be meant to draw a part.
    """
    from torch.utils.data import RandomSampler, SequentialSampler, Subset, SubsetRandomSampler

    try:
        whole, own = len(loader.dataset), len(loader.sampler)
    except Exception:  # a data set, or a sampler, of the script's own may answer as it likes
        return _of_unknown(loader)
    ranks = _ranks()
    if isinstance(loader.sampler, SubsetRandomSampler):
        return own if ranks == 1 else None
    if knows_ranks(loader):
        return whole
    if isinstance(loader.dataset, Subset) and ranks > 1:
        return None
    if isinstance(loader.sampler, SequentialSampler):
        return whole if _reads_whole(loader, whole) else None
    if isinstance(loader.sampler, RandomSampler):
        return whole if not loader.sampler.replacement and own == whole and _reads_whole(loader, whole) else None
    return whole if own * ranks >= whole else None


def _of_unknown(loader: Any) -> int | None:
    """Of a loader whose sampler has no length: that of its data, where it has one."""
    try:
        return len(loader.dataset)
    except Exception:
        return None


def _reads_whole(loader: Any, whole: int) -> bool:
    """Whether a loader's batches, where a batch sampler of the script's own makes them, come to all of the data."""
    from torch.utils.data import BatchSampler

    if loader.batch_sampler is None or type(loader.batch_sampler) is BatchSampler:
        return True
    try:
        batches, size = len(loader.batch_sampler), int(getattr(loader.batch_sampler, "batch_size", 0) or 0)
    except Exception:
        return True
    return size == 0 or (batches + 1) * size * _ranks() >= whole


def knows_ranks(loader: Any) -> bool:
    """Whether a loader's sampler knows how many ranks there are."""
    samplers = [loader.sampler, loader.batch_sampler, getattr(loader.batch_sampler, "sampler", None)]
    return any(hasattr(sampler, "num_replicas") for sampler in samplers)


def _ranks() -> int:
    import torch.distributed as dist

    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1
