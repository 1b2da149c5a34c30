"""Random numbers in the workers of a loader: what they begin with, and whether they are drawn from.

A worker is forked off the rank, with a copy of all that the data set holds. torch seeds its own, numpy's and Python's
generators anew in each; one that the data set or its module keeps is the same in all of them. Each worker leaves a line in a
small file beside the record as it fetches its first batch, and the rank reads the file at the end.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import xxhash

from ...record.probe import Probe
from .patches import Patches, called_from

_now = time.monotonic_ns

SUFFIX = ".workers"
"""Of the file beside a rank's record that its workers write."""

MOST = 200
"""Objects of a data set that are looked through for generators, and lines that are kept."""


class Workers:
    """The workers of every loader of the process. *Called on* each rank."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._path = probe.path.with_suffix(SUFFIX)
        self._rank = os.getpid()
        self._starts = 0

    def attach(self, patches: Patches) -> None:
        """Watch from now on: what is replaced here is replaced in the workers too, being forked off."""
        from torch.utils.data import dataloader

        note, begun = patches.noting(self._first_batch), patches.noting(self._begun)
        ready = patches.noting(self._ready)

        def create(original):
            def create_fetcher(kind, dataset, *args, **kwargs):
                fetcher = original(kind, dataset, *args, **kwargs)
                note(fetcher, kind, dataset)
                return fetcher

            return create_fetcher

        def begin(original):
            def __init__(iterator, loader, *args, **kwargs):
                begun()
                iterator._labkit_started = _now(), called_from(2)
                original(iterator, loader, *args, **kwargs)

            return __init__

        def following(original):
            def _next_data(iterator):
                data = original(iterator)
                started = iterator.__dict__.pop("_labkit_started", None)
                if started is not None:
                    ready(iterator, *started)
                return data

            return _next_data

        patches.wrap(dataloader._DatasetKind, "create_fetcher", create)
        patches.wrap(dataloader._MultiProcessingDataLoaderIter, "__init__", begin)
        patches.wrap(dataloader._MultiProcessingDataLoaderIter, "_next_data", following)

    def _begun(self) -> None:
        self._starts += 1

    def _ready(self, iterator: Any, start_ns: int, where: str) -> None:
        """Workers that were started gave their first batch."""
        if self._starts <= MOST:
            seconds = (_now() - start_ns) / 1e9
            self._probe.event("workers_started", seconds=seconds, workers=iterator._num_workers, where=where)

    def _first_batch(self, fetcher: Any, kind: int, dataset: Any) -> None:
        """*Called in* a worker, once it is set up: look at its generators, and again after its first batch."""
        from torch.utils.data import get_worker_info

        worker = get_worker_info()
        if worker is None or os.getpid() == self._rank or worker.num_workers < 2 or self._starts > MOST:
            return
        before, fetch = _states(dataset), fetcher.fetch

        def first(*args: Any, **kwargs: Any) -> Any:
            given = fetch(*args, **kwargs)
            fetcher.fetch = fetch
            after = _states(dataset)
            drawn = {name: state for name, state in before.items() if after.get(name) != state}
            line = {
                "start": self._starts,
                "worker": worker.id,
                "of": worker.num_workers,
                "stream": bool(kind),
                "drawn": drawn,
            }
            with open(self._path, "a") as file:  # one write of less than a page: lines of several workers do not mix
                file.write(json.dumps(line) + "\n")
            return given

        fetcher.fetch = first

    def close(self) -> None:
        """Take what the workers wrote into the record."""
        if not self._path.exists():
            return
        for line in self._path.read_text().splitlines()[:MOST]:
            said = json.loads(line)
            for name, state in said["drawn"].items():
                self._probe.event(
                    "worker_random",
                    start=said["start"],
                    worker=said["worker"],
                    of=said["of"],
                    stream=said["stream"],
                    generator=name,
                    state=state,
                )
        self._path.unlink()


def _states(dataset: Any) -> dict[str, str]:
    """A hash of the state of each generator that a data set may draw from, by a name."""
    import torch

    found = {
        "numpy": _hash(np.random.get_state()),
        "random": _hash(random.getstate()),
        "torch": _hash(torch.get_rng_state().numpy().tobytes()),
    }
    for name, generator in _own(dataset):
        found[name] = _hash(_state(generator))
    return found


def _own(dataset: Any) -> Iterator[tuple[str, Any]]:
    """The generators that a data set holds, at whatever depth, or its module."""
    module = getattr(getattr(type(dataset), "__getitem__", None), "__globals__", {})
    yield from ((name, value) for name, value in list(module.items()) if _is_generator(value))
    todo, seen = [("data set", dataset)], set()
    while todo and len(seen) < MOST:
        name, one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if _is_generator(one):
            yield name, one
        elif isinstance(one, (list, tuple)):
            todo += [(f"{name}[{at}]", part) for at, part in enumerate(one[:16])]
        elif isinstance(one, dict):
            todo += [(f"{name}.{key}", part) for key, part in list(one.items())[:32]]
        elif not type(one).__module__.startswith(("torch._", "builtins", "numpy")):
            todo += [(f"{name}.{key}", part) for key, part in list(getattr(one, "__dict__", {}).items())[:32]]


def _is_generator(one: Any) -> bool:
    torch = sys.modules.get("torch")
    kinds: tuple[type, ...] = (np.random.Generator, np.random.RandomState, random.Random)
    return isinstance(one, kinds if torch is None else (*kinds, torch.Generator))


def _state(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    if isinstance(generator, random.Random):
        return generator.getstate()
    state = generator.get_state()
    return state.numpy().tobytes() if hasattr(state, "numpy") else state


def _hash(state: Any) -> str:
    return xxhash.xxh3_64_hexdigest(state if isinstance(state, bytes) else repr(_plain(state)).encode())


def _plain(state: Any) -> Any:
    """A state with the bytes of its arrays, whose text would be cut short."""
    if isinstance(state, np.ndarray):
        return state.tobytes()
    if isinstance(state, dict):
        return {key: _plain(value) for key, value in state.items()}
    return tuple(map(_plain, state)) if isinstance(state, tuple) else state
