"""Passes over loaders, and the batches that were read of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(eq=False)
class Pass:
    """One pass over a loader: an epoch of its data.

    Attributes:
        loader: number of the loader, in the order of first use.
        number: of the pass over this loader, from 0.
        size: samples of the whole data set; None where it cannot tell.
        base: what its indices are places in; see `streams`.
        trains: whether a batch of it was followed by a backward pass.
        evaluated: whether a model was called with a batch of it, and no backward pass followed.
        batches: that a pass has; 0 where the loader cannot tell.
        given: batches of it so far.
        rows: samples of it so far.
        whole: samples of its data set; 0 where it cannot tell.
        all_of: the data set that it draws all of; None where it may draw a part.
        begin_ns: when its first batch was asked for.
        ended: whether the loader said that it has no more; a wrapper that reads ahead may still hold its last batches.
        read: batches that were read since a model was called.
        dropped: whether the script has let go of the iterator, and will read no more of this pass.
    """

    loader: int
    number: int
    size: int | None = None
    base: tuple[Any, ...] = ()
    trains: bool = False
    evaluated: bool = False
    batches: int = 0
    given: int = 0
    rows: int = 0
    whole: int = 0
    all_of: int | None = None
    begin_ns: int = 0
    ended: bool = False
    read: int = 0
    first_read: int = 0
    """Batches that were read before a model was called first."""
    dropped: Callable[[], bool] = lambda: False
    whole_numbers: bool = False
    """Whether the sampler's first batch named its samples by whole numbers."""
    reread: bool = False
    """Whether an index says on every rank which sample it is, and earlier passes of this run read them all."""


@dataclass(eq=False)
class Batch:
    """A batch that was read, and is not known to be trained on yet.

    Attributes:
        memory: where its tensors lie, by which it is known again in what a model is called with.
        worker: of the loader that made it; None without workers.
        elements: of the part of it that is the samples.
        targets: a hash of each sample's label; None where the batch has none.
    """

    of: Pass
    digests: list[int]
    ids: list[int] | None
    start_ns: int
    end_ns: int
    memory: frozenset[int] = frozenset()
    worker: int | None = None
    elements: int = 0
    targets: list[int] | None = None
    forwarded: bool = False
