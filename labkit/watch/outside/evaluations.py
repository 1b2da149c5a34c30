"""Weights around an evaluation: are those that training goes on with the ones that it left?

A few values of one parameter are kept after each update, which costs some microseconds, and compared at an evaluation and
at the update that follows it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ...record.probe import Probe
from .patches import Patches, called_from
from .values import ELEMENTS, is_plain, values

KEPT = 512
"""Updates whose values are kept."""

NEIGHBOURS = 32
"""Of these values, so many each lie side by side."""

IDLE = 16
"""Updates of others after which a parameter is taken for one that is trained no more."""

TOLD = 50
"""Evaluations that are noted, at most."""


class Evaluations:
    """Evaluations between updates. *Called on* each rank.

    Args:
        probe: this rank's.
        is_average: whether an average of the script has these values for this parameter.
        collectives: how many the script called.
    """

    def __init__(self, probe: Probe, is_average: Callable[[Any, np.ndarray], bool], collectives: Callable[[], int]) -> None:
        self._probe, self._is_average, self._collectives = probe, is_average, collectives
        self._witness: weakref.ref[Any] | None = None
        self._trail = Trail()
        self._changes: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        self._idle = 0
        self._latest: weakref.ref[Any] | None = None
        """The optimizer of the last update, where it changes that parameter."""
        self._seen: np.ndarray | None = None
        self._where, self._averaged = "", False
        self._exchanged = 0
        self._handles: list[Any] = []
        self.count, self._told = 0, 0
        self._place = 0
        self._view: Any = None

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        before = patches.noting(self._before)
        self._handles.append(register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: before(optimizer)))

    def detach(self) -> None:
        """Watch no more."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    @property
    def is_waiting(self) -> bool:
        """Whether an evaluation is to be compared with the update that follows it."""
        return self._seen is not None

    def updated(self, optimizer: Any) -> None:
        """An optimizer made a step: keep some of the weights that it leaves."""
        witness = self._witness() if self._witness is not None else None
        if witness is None or self._latest is None or self._latest() is not optimizer:
            witness = self._chosen(witness, optimizer)
            if witness is None:
                return
        if self._place != witness.data_ptr():
            before, self._place, self._view = self._view, witness.data_ptr(), _few(witness)
            if before is not None and not _alike(before, self._view):
                self._trail.clear()  # cast to another format
        self._trail.add(self._view)
        self._exchanged = self._collectives()

    def _chosen(self, witness: Any, optimizer: Any) -> Any:
        """The parameter that is looked at; None where this optimizer does not change it."""
        if witness is None or self._idle > IDLE:
            witness = _witness(optimizer)
            if witness is None:
                return None
            self._witness = weakref.ref(witness)
            self._changes.clear()
            self._place = 0
            self._trail.clear()
        self._idle += 1
        self._latest = None
        if not self._is_of(witness, optimizer):
            return None
        self._idle, self._latest = 0, weakref.ref(optimizer)
        return witness

    def _is_of(self, witness: Any, optimizer: Any) -> bool:
        """Whether the optimizer changes the parameter that is looked at."""
        known = self._changes.get(optimizer)
        if known is None:
            known = self._changes[optimizer] = any(witness is p for group in optimizer.param_groups for p in group["params"])
        return known

    def evaluated(self, module: Any) -> None:
        """A module that no other called is called without gradients."""
        self.count += 1
        witness = self._witness() if self._witness is not None else None
        if witness is None or not self._trail.count or self._seen is not None or self._told >= TOLD:
            return
        if any(witness is parameter for parameter in module.parameters()):
            self._seen, self._where = _values(witness), called_from(3)
            changed = self._seen is not None and not np.array_equal(self._seen, self._trail.values()[-1])
            taken = values(witness) if changed else None
            self._averaged = taken is not None and self._is_average(witness, taken)

    def _before(self, optimizer: Any) -> None:
        """An optimizer begins a step: the first one after an evaluation is told of."""
        if self._seen is None:
            return
        witness = self._witness() if self._witness is not None else None
        if witness is None or not self._is_of(witness, optimizer):
            return
        seen, self._seen = self._seen, None
        now = _values(witness)
        if now is None or len(now) != len(seen):
            return
        trail = self._trail.values()
        last = trail[-1]
        away = float(np.linalg.norm(seen - last))
        older = [float(np.linalg.norm(seen - one)) for one in trail[:-1]]
        self._told += 1
        self._probe.event(
            "evaluation",
            where=self._where,
            changed=float(np.mean(seen != last)),
            stayed=bool(np.array_equal(now, seen)),
            back=bool(np.array_equal(now, last)),
            older=min(older, default=away) / away if away > 0 else 1.0,
            returned=any(distance == 0 for distance in older),
            average=self._averaged,
            exchanged=self._collectives() > self._exchanged,
        )


class Trail:
    """The last values that some weights had, oldest first; kept in one piece of memory, so that adding some costs little.

    Attributes:
        count: of values that are kept.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all."""
        self.count = self._next = 0
        self._kept: Any = None

    def add(self, few: Any) -> None:
        """Keep a copy of some values, of one shape and type as long as nothing is forgotten."""
        if self._kept is None:
            empty = np.empty if isinstance(few, np.ndarray) else few.new_empty
            self._kept = empty((KEPT, *few.shape), **({"dtype": few.dtype} if empty is np.empty else {}))
        at = self._next
        self._kept[at] = few
        self._next = (at + 1) % KEPT
        if self.count < KEPT:
            self.count += 1

    def values(self) -> list[np.ndarray]:
        """Each as float64, flat."""
        if not self.count:
            return []
        every = _as_array(self._kept).reshape(KEPT, -1)
        return [every[(self._next - self.count + at) % KEPT] for at in range(self.count)]


def _alike(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one.dtype == other.dtype and one.shape == other.shape


def _as_array(few: Any) -> np.ndarray:
    if isinstance(few, np.ndarray):
        return few.astype(np.float64).reshape(-1)
    return few.double().reshape(-1).cpu().numpy()


def _few(tensor: Any) -> Any:
    """Some values, as a view [stretches, neighbours]: what lies side by side is read at once, and what is spread is not.
    An array where numpy can see the memory, which copies it in less time."""
    flat = tensor.detach().reshape(-1)
    each = min(NEIGHBOURS, flat.numel())
    count = max(1, min(ELEMENTS // NEIGHBOURS, flat.numel() // each))
    few = flat[: flat.numel() // count * count].view(count, -1)[:, :each]
    try:
        return few.numpy()
    except (TypeError, RuntimeError):  # bfloat16, or on another device
        return few


def _values(tensor: Any) -> np.ndarray | None:
    """The same values as float64; None where they cannot be read."""
    return _as_array(_few(tensor)) if is_plain(tensor) else None


def _witness(optimizer: Any) -> Any:
    """The largest parameter that the optimizer changes and whose values are all here."""
    parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None and is_plain(p)]
    return max(parameters, key=lambda p: p.numel(), default=None)
