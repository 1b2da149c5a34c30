"""Averages of weights that a script keeps, found by what it calls them in the frames that run, and by their shapes."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .patches import is_own

WORDS = frozenset({"ema", "shadow", "polyak", "swa", "average", "averaged", "averages"})
_CLASS = re.compile(r"EMA|Ema(?![a-z])|MovingAverage|Averaged|Polyak")
_LIBRARIES = ("/torch/", "/site-packages/", "/dist-packages/", "/lib/python")

FRAMES, NAMES, LEVELS = 12, 300, 2
"""Frames, names of a frame and levels of attributes that are looked at, at most."""


@dataclass(frozen=True)
class Average:
    """What looks like averaged weights.

    Attributes:
        name: how the script calls it, such as ema.shadow.
        kind: the class of what holds the tensors.
        tensors: by name; by place, for a list.
        is_torch: whether it is torch's AveragedModel.
    """

    name: str
    kind: str
    tensors: dict[str, Any]
    holder: Any
    is_torch: bool = False


def averages(depth: int = 2) -> list[Average]:
    """Those of the frames of the script that run now; none while a debugger follows it."""
    if sys.gettrace() is not None:
        return []
    found: dict[int, Average] = {}
    frame: Any = sys._getframe(depth)
    modules: set[int] = set()
    count = 0
    while frame is not None and count < FRAMES:
        if _is_script(frame.f_code.co_filename):
            count += 1
            if id(frame.f_globals) not in modules:
                modules.add(id(frame.f_globals))
                _search_all(frame.f_globals, found)
            if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
                seen = frame.f_locals
                _search_all(seen, found)
                if sys.version_info < (3, 13):
                    seen.clear()  # a copy, which would keep alive what the script drops
        frame = frame.f_back
    return list(found.values())


def _is_script(file: str) -> bool:
    return not is_own(file) and not file.startswith("<frozen") and not any(part in file for part in _LIBRARIES)


def _search_all(names: Mapping[str, Any], found: dict[int, Average]) -> None:
    for name, value in list(names.items())[:NAMES]:
        if not name.startswith("__"):
            _search(name, value, found, LEVELS, named=False)


def _search(name: str, value: Any, found: dict[int, Average], levels: int, *, named: bool) -> None:
    import torch
    from torch.optim.swa_utils import AveragedModel

    if id(value) in found or isinstance(value, (torch.Tensor, type, str, int, float)):
        return
    named = named or _is_named(name, value)
    if isinstance(value, AveragedModel):
        found[id(value)] = Average(name, "AveragedModel", dict(value.module.named_parameters()), value, True)
        return
    tensors = dict(_tensors(value)) if named else {}
    if tensors:
        found[id(value)] = Average(name, type(value).__name__, tensors, value)
    if levels and (named or _is_own_class(value)):
        for inner, held in _attributes(value):
            _search(f"{name}.{inner}", held, found, levels - 1, named=named)


def _is_named(name: str, value: Any) -> bool:
    words = re.split(r"[._]", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())
    return bool(WORDS & set(words)) or bool(_CLASS.search(type(value).__name__))


def _tensors(value: Any) -> Iterator[tuple[str, Any]]:
    """The tensors of a module, a mapping or a list, by name."""
    import torch

    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, torch.nn.Module):
        items = value.named_parameters()
    elif isinstance(value, Mapping):
        items = list(value.items())
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    for name, tensor in items:
        if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
            yield str(name), tensor


def _is_own_class(value: Any) -> bool:
    """Whether an object is of a class of the script's own."""
    module = sys.modules.get(type(value).__module__)
    return _is_script(getattr(module, "__file__", None) or "<frozen")


def _attributes(value: Any) -> list[tuple[str, Any]]:
    import torch

    if isinstance(value, torch.nn.Module):
        return list(value.named_children())[:NAMES]
    if isinstance(value, Mapping):
        return [(str(name), held) for name, held in list(value.items())[:NAMES]]
    return list(getattr(value, "__dict__", {}).items())[:NAMES]
