"""What was loaded in a process: files with states of a training, and who was given what."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .states import OptimizerState, States, optimizer_state
from .values import plain_name, signatures

TENSORS = 256
"""Tensors of a module that are looked at, at most."""


@dataclass(eq=False)
class Loaded:
    """A file with states of a training, as it was loaded.

    Attributes:
        number: in the order of loads.
        names: plain names of its weights, with their shapes.
        marks: signatures of its weights.
        optimizers: what its optimizers hold.
        schedule_at, rate, scale: of the first scheduler and scaler in it; -1 without one.
        unread: what its optimizers hold that the script did not ask for, where a file is read in part.
        made_at, made_step: updates, and the step, at which this process saved it; -1 for a file of another run.
    """

    number: int
    path: str
    where: str
    kinds: frozenset[str]
    names: frozenset[tuple[str, tuple[int, ...]]]
    marks: frozenset[Any]
    types: frozenset[str]
    optimizers: list[OptimizerState]
    counters: Mapping[str, int]
    schedule_at: int
    rate: float
    scale: float
    made_at: int = -1
    made_step: int = -1
    unread: tuple[OptimizerState, ...] = ()


@dataclass(eq=False)
class ModuleLoad:
    """A module that was given a state: what some of its values were before and after."""

    module: Any
    file: int
    where: str
    before: dict[str, np.ndarray]
    after: dict[str, np.ndarray]
    missing: frozenset[str] = frozenset()
    nothing: bool = False
    """Whether no tensor of another fitted: it was given its own, or names that it has not."""


@dataclass(eq=False)
class Given:
    """A state that an optimizer, scheduler or scaler was given, and the file it came from (-1: none that is known)."""

    file: int
    where: str
    state: OptimizerState | None = None


@dataclass(eq=False)
class Seen:
    """All that was loaded in this process."""

    files: list[Loaded] = field(default_factory=list)
    modules: list[ModuleLoad] = field(default_factory=list)
    given: weakref.WeakKeyDictionary[Any, Given] = field(default_factory=weakref.WeakKeyDictionary)
    generation: int = 0


def summed(states: States, number: int, path: str, where: str, unread: tuple[OptimizerState, ...] = ()) -> Loaded:
    """Keep of a file that was loaded what later questions need, and none of its tensors.

    Args:
        unread: what optimizers in the file hold that the script did not ask for.
    """
    tensors = {plain_name(name): value for weights in states.weights for name, value in weights.items()}
    schedule = states.schedulers[0] if states.schedulers else {}
    rates = schedule.get("_last_lr") or [-1.0]
    return Loaded(
        number,
        path,
        where,
        frozenset(states.kinds),
        frozenset((name, tuple(value.shape)) for name, value in tensors.items()),
        frozenset(signatures(list(tensors.values())[: 4 * TENSORS])),
        frozenset(str(value.dtype).removeprefix("torch.") for value in tensors.values() if value.is_floating_point()),
        [optimizer_state(one) for one in states.optimizers],
        dict(states.counters),
        int(schedule.get("last_epoch", -1)),
        float(rates[0]) if isinstance(rates, list) else -1.0,
        float(states.scalers[0].get("scale", -1.0)) if states.scalers else -1.0,
        unread=unread,
    )
