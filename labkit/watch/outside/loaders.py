"""torch.utils.data.DataLoader: which samples each pass gives, in which order, and how long a batch is waited for."""

from __future__ import annotations

import time
import weakref
from collections import deque
from typing import Any

from .patches import Patches, called_from
from .steps import Pass, Steps

_now = time.monotonic_ns


class Loaders:
    """Every DataLoader of the process, seen as it is iterated."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._passes: dict[int, int] = {}
        self.where: dict[int, str] = {}
        self.facts: dict[str, Any] = {}

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        from torch.utils.data import dataloader

        base = dataloader._BaseDataLoaderIter
        watch = self
        given, ended = patches.noting(self._given), patches.noting(self._steps.pass_ended)

        def begin(original):
            def __init__(iterator, loader, *args, **kwargs):
                iterator._labkit_pass = watch._begin(loader, iterator)
                iterator._labkit_asked = deque()
                original(iterator, loader, *args, **kwargs)

            return __init__

        def again(original):
            def _reset(iterator, loader, first_iter=False):
                if not first_iter:
                    iterator._labkit_pass = watch._begin(loader, iterator)
                    iterator._labkit_asked = deque()
                return original(iterator, loader, first_iter)

            return _reset

        def ask(original):
            def _next_index(iterator):
                index = original(iterator)
                iterator._labkit_asked.append(index)
                return index

            return _next_index

        def give(original):
            def __next__(iterator):
                start = _now()
                try:
                    data = original(iterator)
                except StopIteration:
                    ended(iterator._labkit_pass)
                    raise
                given(iterator, data, start, _now())
                return data

            return __next__

        patches.wrap(base, "__init__", begin)
        patches.wrap(base, "_reset", again)
        patches.wrap(base, "_next_index", ask)
        patches.wrap(base, "__next__", give)

    def _begin(self, loader: Any, iterator: Any) -> Pass:
        number = self._numbers.get(loader)
        if number is None:
            number = self._numbers[loader] = len(self._numbers)
            self.where[number] = called_from(3)
        at = self._passes[number] = self._passes.get(number, -1) + 1
        alive = weakref.ref(iterator)
        return Pass(number, at, _size(loader), dropped=lambda: alive() is None)

    def _given(self, iterator: Any, data: Any, start: int, end: int) -> None:
        index = iterator._labkit_asked.popleft() if iterator._labkit_asked else None
        self._steps.fetched(iterator._labkit_pass, data, _ids(iterator, index), start, end)


def _size(loader: Any) -> int | None:
    """Samples of the data that all ranks together are to read; None where that cannot be told.

    A Subset that several ranks read without a sampler that knows of ranks may be the part of one of them, or of all.
    """
    from torch.utils.data import Subset

    if isinstance(loader.dataset, Subset) and _ranks() > 1 and not _knows_ranks(loader):
        return None
    try:
        return len(loader.dataset)
    except Exception:  # it has none, or cannot say: a data set of the script's own may answer as it likes
        return None


def _knows_ranks(loader: Any) -> bool:
    samplers = [loader.sampler, loader.batch_sampler, getattr(loader.batch_sampler, "sampler", None)]
    return any(hasattr(sampler, "num_replicas") for sampler in samplers)


def _ranks() -> int:
    import torch.distributed as dist

    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def _ids(iterator: Any, index: Any) -> list[int] | None:
    """What the sampler asked for, as places in the whole data set; None where it asks for no whole numbers."""
    from torch.utils.data import Subset

    dataset = iterator._dataset
    places = list(index) if isinstance(index, (list, tuple)) else [index]
    try:
        while isinstance(dataset, Subset):
            places = [dataset.indices[place] for place in places]
            dataset = dataset.dataset
        return [int(place) for place in places]
    except (TypeError, ValueError, IndexError):
        return None
