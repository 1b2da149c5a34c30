"""torch.utils.data.DataLoader: which samples each pass gives, in which order, and how long a batch is waited for."""

from __future__ import annotations

import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from .following import FollowedSteps
from .patches import Patches, called_from
from .read_passes import Pass
from .streams import Streams, all_of, knows_ranks

_now = time.monotonic_ns


class Loaders:
    """Every DataLoader of the process, seen as it is iterated."""

    def __init__(self, steps: FollowedSteps) -> None:
        self._steps = steps
        self._subset: Any = None
        self._streams = Streams()
        self.where: dict[int, str] = {}
        self.workers: dict[int, int] = {}
        self.facts: dict[str, Any] = {}
        self.begins: Callable[[Any, int], None] = lambda loader, number: None
        """Called with each loader, and the number of its stream of data, as it begins a pass."""

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        from torch.utils.data import Subset, dataloader

        self._subset = Subset
        base = dataloader._BaseDataLoaderIter
        watch, steps, sampling = self, self._steps, patches.sampling
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
                if "_labkit_asked" in iterator.__dict__:
                    iterator._labkit_asked.append(index)
                return index

            return _next_index

        def give(original):
            def __next__(iterator):
                own = iterator.__dict__
                if "_labkit_pass" not in own:
                    return original(iterator)  # it was made before there was a watch
                start = _now()
                try:
                    data = original(iterator)
                except StopIteration:
                    ended(own["_labkit_pass"])
                    raise
                if not sampling.in_burst and (asked := own["_labkit_asked"]) and own.get("_in_order", True):
                    try:
                        if steps.follows(own["_labkit_pass"], asked[0], data, start):
                            asked.popleft()
                            return data
                    except Exception:
                        patches.keep_fault()
                given(iterator, data, start, _now())
                return data

            return __next__

        def process(original):
            def _process_data(iterator, data, worker, *args, **kwargs):
                iterator._labkit_worker = worker
                return original(iterator, data, worker, *args, **kwargs)

            return _process_data

        patches.wrap(dataloader._MultiProcessingDataLoaderIter, "_process_data", process)
        patches.wrap(base, "__init__", begin)
        patches.wrap(base, "_reset", again)
        patches.wrap(base, "_next_index", ask)
        patches.wrap(base, "__next__", give)

    def _begin(self, loader: Any, iterator: Any) -> Pass:
        stream = self._streams.of(loader)
        if stream.number not in self.where:
            self.where[stream.number] = called_from(3)
            self.workers[stream.number] = int(getattr(loader, "num_workers", 0) or 0)
        self.begins(loader, stream.number)
        alive = weakref.ref(iterator)
        begun = Pass(
            stream.number,
            stream.passes - 1,
            stream.size,
            base=stream.base,
            batches=_length(loader),
            whole=_length(loader.dataset),
            all_of=all_of(loader),
            reread=stream.passes > 1 and (not _several_ranks() or knows_ranks(loader)),
            dropped=lambda: alive() is None,
        )
        stream.is_free = lambda: begun.ended or alive() is None
        return begun

    def _given(self, iterator: Any, data: Any, start: int, end: int) -> None:
        own = iterator.__dict__
        asked, of, worker = own["_labkit_asked"], own["_labkit_pass"], own.get("_labkit_worker")
        index = asked.popleft() if asked else None
        # workers that may overtake each other give batches in another order than they were asked for
        ids = self._ids(of, own["_dataset"], index) if own.get("_in_order", True) else None
        if self._steps.is_followed(of):
            self._steps.followed_batch(of, data, ids, start, end, worker)
        else:
            self._steps.fetched(of, data, ids, start, end, worker)

    def _ids(self, of: Pass, dataset: Any, index: Any) -> list[int] | None:
        """What the sampler asked for, as places in the whole data set; None where it asks for no whole numbers."""
        places = list(index) if isinstance(index, (list, tuple)) else [index]
        if not isinstance(dataset, self._subset):
            if of.whole_numbers and places and type(places[0]) is type(places[-1]) is int:
                return places  # as all of its first batch were
            if set(map(type, places)) == {int}:
                of.whole_numbers = True
                return places
        try:
            while isinstance(dataset, self._subset):
                places = [dataset.indices[place] for place in places]
                dataset = dataset.dataset
            return [int(place) for place in places]
        except (TypeError, ValueError, IndexError):
            return None


def _several_ranks() -> bool:
    import torch.distributed as dist

    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def _length(of: Any) -> int:
    """Of a loader or a data set; 0 where it cannot tell."""
    try:
        return len(of)
    except Exception:  # it has none, or cannot say: a data set of the script's own may answer as it likes
        return 0
