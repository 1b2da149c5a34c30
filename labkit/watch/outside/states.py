"""What a saved or loaded object holds: the states of a training, told by the keys that torch gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .values import is_plain, signatures

DEPTH = 4
"""Levels of nested containers in which states are looked for."""

ITEMS = 64
"""Items of a list that are looked at."""

COUNTER = re.compile(r"epoch|step|iter|batch|sample|token|position|offset|update|seen|cursor", re.IGNORECASE)
_SCHEDULER = re.compile(r"sched|^lr_|_lr$|warmup", re.IGNORECASE)
_RNG = re.compile(r"rng|random", re.IGNORECASE)


@dataclass
class States:
    """What was found in an object.

    Attributes:
        kinds: of "optimizer", "scheduler", "scaler", "rng", "weights", and "unknown" for an object that makes its own state.
        optimizers, schedulers, scalers: the states themselves, as mappings.
        weights: mappings from names to tensors.
        counters: whole numbers under names that count something.
        loose: tensors elsewhere, such as a generator's state.
    """

    kinds: set[str] = field(default_factory=set)
    optimizers: list[Mapping[str, Any]] = field(default_factory=list)
    schedulers: list[Mapping[str, Any]] = field(default_factory=list)
    scalers: list[Mapping[str, Any]] = field(default_factory=list)
    weights: list[dict[str, Any]] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    loose: list[Any] = field(default_factory=list)

    @property
    def trains(self) -> bool:
        """Whether anything of a training is in it."""
        return bool(self.kinds & {"optimizer", "scheduler", "scaler", "weights", "unknown"})


def states_of(obj: Any) -> States:
    """Look through an object that is saved, or was loaded."""
    found = States()
    _walk(obj, "", found, DEPTH)
    return found


def _walk(obj: Any, name: str, found: States, depth: int) -> None:
    if isinstance(obj, Mapping):
        _mapping(obj, name, found, depth)
    elif isinstance(obj, (list, tuple)):
        for item in obj[:ITEMS] if depth else ():
            _walk(item, name, found, depth - 1)
    elif callable(getattr(obj, "state_dict", None)):
        _object(obj, found)
    elif hasattr(obj, "untyped_storage") and len(found.loose) < ITEMS:
        found.loose.append(obj)


def _object(obj: Any, found: States) -> None:
    """A whole object that is saved as it is, or that a checkpointer will ask for its state."""
    import torch
    from torch.amp.grad_scaler import GradScaler
    from torch.optim.lr_scheduler import LRScheduler

    if isinstance(obj, torch.nn.Module):
        found.kinds.add("weights")
        found.weights.append(dict(obj.named_parameters()))
        return
    kinds = ((torch.optim.Optimizer, "optimizer"), (LRScheduler, "scheduler"), (GradScaler, "scaler"))
    found.kinds.add(next((name for of, name in kinds if isinstance(obj, of)), "unknown"))


def _mapping(obj: Mapping[Any, Any], name: str, found: States, depth: int) -> None:
    keys = {key for key in obj if isinstance(key, str)}
    if _RNG.search(name):
        found.kinds.add("rng")
    if {"param_groups", "state"} <= keys or any(key.startswith("param_groups.") for key in keys):
        found.kinds.add("optimizer")
        found.optimizers.append(obj)
        return
    if {"last_epoch", "_step_count"} <= keys or {"num_bad_epochs", "best"} <= keys or "_schedulers" in keys:
        found.kinds.add("scheduler")
        found.schedulers.append(obj)
        return
    if {"scale", "growth_factor", "_growth_tracker"} <= keys:
        found.kinds.add("scaler")
        found.scalers.append(obj)
        return
    tensors = {key: value for key, value in obj.items() if isinstance(key, str) and hasattr(value, "untyped_storage")}
    if _RNG.search(name) or 2 * len(tensors) < len(obj):
        found.loose += list(tensors.values())[:ITEMS]
    elif tensors:
        found.kinds.add("weights")
        found.weights.append(tensors)
    for key, value in obj.items() if len(tensors) < len(obj) else ():
        word = key if isinstance(key, str) else ""
        _named(word, value, found)
        if depth and key not in tensors:
            _walk(value, word, found, depth - 1)


def _named(word: str, value: Any, found: States) -> None:
    """What a name alone says of a value."""
    if isinstance(value, int) and not isinstance(value, bool) and COUNTER.search(word):
        found.counters.setdefault(word, value)
    own = (Mapping, list, tuple, int, float) if "sched" in word.lower() else (Mapping, list, tuple)
    if _SCHEDULER.search(word) and isinstance(value, own):
        found.kinds.add("scheduler")  # by a name of its own: a script's own schedule
    if _RNG.search(word):
        found.kinds.add("rng")


@dataclass(frozen=True)
class OptimizerState:
    """What an optimizer's state holds, in short.

    Attributes:
        steps: the most that one of its counters says; -1 without one.
        types: the number format of each kind of tensor in it, by name.
        settings: of its first group: what is not a list of parameters, the learning rate apart.
        rate: its learning rate; -1 without one.
        parameters: that its groups hold.
        marks: signatures of the tensors.
    """

    steps: int
    types: Mapping[str, str]
    settings: Mapping[str, Any]
    rate: float
    parameters: int
    marks: frozenset[tuple[Any, ...]]


def optimizer_state(given: Mapping[str, Any], most: int = 64) -> OptimizerState:
    """Sum an optimizer's state_dict up, or (`optimizer.state`, `optimizer.param_groups`) of a live one under these keys."""
    entries = [entry for entry in list(given.get("state", {}).values())[:most] if isinstance(entry, Mapping)]
    counters = [_number(entry["step"]) for entry in entries if "step" in entry]
    tensors = [(name, value) for entry in entries for name, value in entry.items() if name != "step" and is_plain(value)]
    types = {name: str(value.dtype).removeprefix("torch.") for name, value in tensors if value.is_floating_point()}
    groups = [group for group in given.get("param_groups", []) if isinstance(group, Mapping)]
    first = groups[0] if groups else {}
    settings = {
        key: value
        for key, value in first.items()
        if key not in ("params", "lr", "param_names") and isinstance(value, (int, float, str, tuple, bool))
    }
    return OptimizerState(
        int(max(counters, default=-1)),
        types,
        settings,
        _number(first.get("lr", -1)),
        sum(len(group.get("params", ())) for group in groups),
        frozenset(signatures(value for _, value in tensors)),
    )


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return -1.0
