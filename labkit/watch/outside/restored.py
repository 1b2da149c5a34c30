"""Weights that were loaded: how many of an optimizer's, and whether they are still there when training goes on."""

from __future__ import annotations

from typing import Any

import numpy as np

from .loaded import Loaded, ModuleLoad
from .values import signature, values

SAME, APART = 0.02, 0.5
"""Relative distance up to which values are those that were loaded, and cosine below which they have nothing of them."""

NEAR, FAR = 0.3, 0.7
"""Shares of the way that loading made: what is so near to where it was, and so far from what was loaded, was put back."""


def holds(load: ModuleLoad, held: set[int]) -> bool:
    """Whether the module that was loaded has one of these parameters."""
    module = load.module()
    return module is not None and any(id(parameter) in held for parameter in module.parameters())


def of_weights(optimizer: Any, file: Loaded | None, loads: list[ModuleLoad], held: set[int]) -> dict[str, Any]:
    """How many of the optimizer's weights were loaded, and how much of that was overwritten before its first step."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    total = sum(p.numel() for p in parameters)
    loaded = considered = overwritten = 0
    missing = 0
    for load in [load for load in loads if not load.nothing]:
        module = load.module()
        for name, parameter in module.named_parameters() if module is not None else ():
            if id(parameter) not in held:
                continue
            if name in load.missing:
                missing += parameter.numel()
                continue
            loaded += parameter.numel()
            after, now = load.after.get(name), values(parameter)
            if after is None or now is None or len(after) != len(now) or not np.any(after):
                continue
            considered += parameter.numel()
            overwritten += parameter.numel() * _is_other(after, now)
    shapes = {shape for _, shape in file.names} if file is not None else set()
    fitting = [one for p in parameters[:256] if tuple(p.shape) in shapes and (one := signature(p)) is not None]
    marks = file.marks if file is not None else frozenset()
    return {
        "weights_loaded": min(1.0, loaded / max(1, total)),
        "weights_missing": min(1.0, missing / max(1, total)),
        "weights_overwritten": overwritten / max(1, considered),
        "weights_expected": len(fitting),
        "weights_arrived": sum(one in marks for one in fitting),
        "load_where": loads[-1].where if loads else "",
    }


def _is_other(after: np.ndarray, now: np.ndarray) -> bool:
    """Whether values have nothing to do with those that were loaded."""
    size = float(np.linalg.norm(after))
    if float(np.linalg.norm(now - after)) <= SAME * size:
        return False
    both = size * float(np.linalg.norm(now))
    return len(after) >= 8 and (both == 0 or float(after @ now) < APART * both)


def put_back(loads: list[ModuleLoad]) -> float:
    """Share of what was loaded that is, after an update, where it was before the load."""
    moved = back = 0
    for load in loads:
        module = load.module()
        for name, parameter in module.named_parameters() if module is not None else ():
            before, after, now = load.before.get(name), load.after.get(name), values(parameter)
            if before is None or after is None or now is None or not len(before) == len(after) == len(now):
                continue
            way = float(np.linalg.norm(after - before))
            if way <= 1e-6 * float(np.linalg.norm(after)):
                continue
            moved += parameter.numel()
            is_back = np.linalg.norm(now - before) < NEAR * way and np.linalg.norm(now - after) > FAR * way
            back += parameter.numel() * bool(is_back)
    return back / max(1, moved)
