"""Averages of weights that a script keeps beside those it trains: do they move, and how much of each update do they take?

Looked at after the first updates, then ever more seldom, and after the first updates that follow a load.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...record.probe import Probe
from .loaded import Seen
from .named import Average, averages
from .patches import Patches, is_library
from .replicas import is_looked_at
from .states import States
from .values import plain_name, signature, storage, values

PICKED = 4
"""Tensors of an average that are compared."""

AFTER_LOAD = 4
"""Updates after a load at which averages are looked at."""


@dataclass(eq=False)
class _Known:
    """An average, as it was at the last look."""

    number: int
    update: int = -1
    mean: np.ndarray = field(default_factory=lambda: np.zeros(0))
    weights: np.ndarray = field(default_factory=lambda: np.zeros(0))
    moved: bool = False


class Averages:
    """The averaged weights of the process. *Called on* each rank; no collective is made.

    Args:
        probe: this rank's.
        models: the modules that the script trains.
        seen: what was loaded.
    """

    def __init__(self, probe: Probe, models: Callable[[], Iterable[Any]], seen: Seen) -> None:
        self._probe, self._models, self._seen = probe, models, seen
        self._known: dict[str, _Known] = {}
        self._evaluated: weakref.WeakSet[Any] = weakref.WeakSet()
        self._generation, self._loaded_at = 0, -AFTER_LOAD - 1
        self._updates = self._named = 0
        self._named_at = -1
        self.any_moved = False

    def attach(self, patches: Patches) -> None:
        """Watch from now on: how often the script itself goes through a wrapped model by names."""
        from torch.nn.parallel import DistributedDataParallel

        def around(original):
            def by_name(model, *args, **kwargs):
                if self._named_at != self._updates and not is_library(sys._getframe(1).f_code.co_filename):
                    self._named_at = self._updates
                    self._named += 1
                return original(model, *args, **kwargs)

            return by_name

        for name in ("named_parameters", "state_dict"):
            patches.wrap(DistributedDataParallel, name, around)

    def evaluated(self, module: Any) -> None:
        """A module that no other called is called without gradients."""
        self._evaluated.add(module)

    def updated(self, update: int) -> None:
        """The optimizers have made so many steps: look, if it is time."""
        self._updates = update
        if self._seen.generation != self._generation:
            self._generation, self._loaded_at = self._seen.generation, update - 1
        since = update - self._loaded_at
        if is_looked_at(update) or since <= AFTER_LOAD:
            self._look(update, since if since <= AFTER_LOAD else 0)

    def _look(self, update: int, since_load: int) -> None:
        names, called = self._trained()
        if not names:
            return
        for average in averages(3):
            pairs = _paired(average, names)
            if not pairs:
                continue
            mean, weights = _of([one for one, _ in pairs]), _of([parameter for _, parameter in pairs])
            if len(mean) and len(mean) == len(weights):
                self._tell(update, since_load, average, called, pairs, mean, weights)

    def _trained(self) -> tuple[dict[str, Any], set[str]]:
        """The parameters that are trained, by plain name, and the names that the called modules give them."""
        named = [pair for model in self._models() for pair in model.named_parameters() if pair[1].requires_grad]
        return {plain_name(name): parameter for name, parameter in named}, {name for name, _ in named}

    def _tell(
        self,
        update: int,
        since_load: int,
        average: Average,
        called: set[str],
        pairs: list[tuple[Any, Any]],
        mean: np.ndarray,
        weights: np.ndarray,
    ) -> None:
        known = self._known.setdefault(average.name, _Known(len(self._known)))
        follows = known.update == update - 1 and len(known.mean) == len(mean)
        moved = len(known.mean) == len(mean) and not np.array_equal(known.mean, mean)
        stirred = len(known.weights) == len(weights) and not np.array_equal(known.weights, weights)
        known.moved = known.moved or moved
        self.any_moved = self.any_moved or moved
        step = float(np.linalg.norm(weights - known.weights)) if follows else 0.0
        way = float(np.linalg.norm(known.weights - known.mean)) if follows else 0.0
        self._probe.event(
            "average",
            update=update,
            number=known.number,
            held_as=average.name,
            tensors=len(average.tensors),
            called=sum(name in called for name in average.tensors),
            named=self._named,
            fitting=len(pairs),
            moved=moved,
            weights_moved=stirred,
            evaluated=any(
                average.holder is one or getattr(average.holder, "module", None) is one for one in self._evaluated
            ),
            since_load=since_load,
            from_file=self._is_from_file(pairs),
            pull=_pull(known.mean, mean, known.weights) if follows and way > 0 else -1.0,
            lag=way / step if step > 0 else 0.0,
        )
        known.update, known.mean, known.weights = update, mean, weights

    def _is_from_file(self, pairs: list[tuple[Any, Any]]) -> bool:
        if not self._seen.files:
            return False
        marks = [one for mean, _ in pairs[:PICKED] if (one := signature(mean)) is not None]
        return bool(marks) and all(one in self._seen.files[-1].marks for one in marks)

    def saved(self, states: States) -> tuple[bool, bool]:
        """Whether the script has an average that moves, and whether it is in what is saved."""
        if not self.any_moved:
            return False, False
        names, _ = self._trained()
        kept = [pairs for average in averages(3) if self._moves(average) and (pairs := _paired(average, names))]
        saved = [tensor for weights in states.weights for tensor in weights.values()]
        places, marks = {storage(tensor) for tensor in saved}, {signature(tensor) for tensor in saved[:1024]}
        held = [storage(one) in places or signature(one) in marks for pairs in kept for one, _ in pairs[:PICKED]]
        return bool(kept), any(held) or "unknown" in states.kinds

    def _moves(self, average: Average) -> bool:
        known = self._known.get(average.name)
        return average.is_torch or (known is not None and known.moved)

    def holds(self, parameter: Any, taken: np.ndarray) -> bool:
        """Whether an average has these values for a parameter that is trained."""
        names, _ = self._trained()
        for average in averages(3):
            for mean, of in _paired(average, names):
                if of is parameter and (now := values(mean)) is not None and np.array_equal(now, taken):
                    return True
        return False


def _paired(average: Average, names: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Its tensors, each with the trained parameter that it is the average of: by name, or by place for a list."""
    plain = {plain_name(name): tensor for name, tensor in average.tensors.items()}
    if all(name.isdigit() for name in plain):
        parameters = list(names.values())
        fits = [tensor.shape for tensor in plain.values()] == [parameter.shape for parameter in parameters]
        pairs = list(zip(plain.values(), parameters, strict=True)) if fits else []
    else:
        pairs = [(tensor, names[name]) for name, tensor in plain.items() if name in names]
    pairs = [(mean, of) for mean, of in pairs if mean is not of and mean.shape == of.shape]
    return pairs if 2 * len(pairs) >= len(names) else []


def _of(tensors: list[Any]) -> np.ndarray:
    taken = [one for tensor in tensors[:PICKED] if (one := values(tensor)) is not None]
    return np.concatenate(taken) if taken else np.zeros(0)


def _pull(before: np.ndarray, after: np.ndarray, weights: np.ndarray) -> float:
    """How much of the way from an average to the weights one update took it."""
    way = weights - before
    return float((after - before) @ way / (way @ way))
