"""A few values of a tensor, so that two moments of it, or a file and a model, can be compared at little cost."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

ELEMENTS = 32
"""Values that are taken of a tensor, spread evenly."""

_SHARDED = ("DTensor", "ShardedTensor", "FlatParameter", "FakeTensor")
_PREFIXES = re.compile(r"(^|\.)(module|_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)(?=\.)")


def is_plain(tensor: Any) -> bool:
    """Whether a tensor's values are all here: it is no part of a larger one, and its memory is in use."""
    import torch

    if not isinstance(tensor, torch.Tensor) or any(kind.__name__ in _SHARDED for kind in type(tensor).__mro__):
        return False
    if tensor.device.type == "meta" or tensor.layout is not torch.strided or not tensor.numel():
        return False
    return tensor.untyped_storage().size() > 0


def values(tensor: Any, count: int = ELEMENTS) -> np.ndarray | None:
    """Some values of a tensor as float64; None where they cannot be read."""
    if not is_plain(tensor):
        return None
    flat = tensor.detach().reshape(-1)
    step = max(1, flat.numel() // count)
    return flat[::step][:count].double().cpu().numpy()


def signature(tensor: Any) -> tuple[Any, ...] | None:
    """What tells a tensor's content from that of others, whatever its number format; None where all values are equal."""
    taken = values(tensor)
    if taken is None or len(taken) < 2 or bool((taken == taken[0]).all()):
        return None
    return (tuple(tensor.shape), taken.astype(np.float32).tobytes())


def signatures(tensors: Iterable[Any]) -> set[tuple[Any, ...]]:
    """Those of several tensors, without the ones that have none."""
    return {one for one in map(signature, tensors) if one is not None}


def plain_name(name: str) -> str:
    """A parameter's name without what wrappers and compilers put into it."""
    return _PREFIXES.sub("", name).lstrip(".")


def storage(tensor: Any) -> int:
    """The address of a tensor's memory; 0 where it has none."""
    return tensor.untyped_storage().data_ptr() if is_plain(tensor) else 0
