"""What a module is given to train on: a hash of each row, by which ranks that are given the same are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...record.batches import digest_rows

ELEMENTS = 1024
"""Elements of a row that are hashed at most, spread evenly."""

ON_DEVICE = 16
"""Steps in which rows that lie on another device than the processor are looked at: each look waits for them."""


def fed_rows(given: Any) -> tuple[list[int], int, bool] | None:
    """(a hash of each row, how many elements, whether they lie on another device) of what a module is called with; None
    where these are no data: made by another module, or nothing with rows.

    Args:
        given: positional and keyword arguments.
    """
    import torch

    tensors = [one for one in _tensors(given) if one.ndim and one.numel()]
    if not tensors or any(one.requires_grad or one.is_sparse or type(one) is not torch.Tensor for one in tensors):
        return None
    rows = tensors[0].shape[0]
    mine = [one for one in tensors if one.shape[0] == rows]
    away = tensors[0].device.type != "cpu"
    elements = max(one.numel() for one in mine)
    digests = digest_rows([_narrow(one) for one in mine] if len(mine) > 1 else _narrow(mine[0]))
    return digests, elements, away


def _narrow(tensor: Any) -> Any:
    flat = tensor.detach().reshape(tensor.shape[0], -1)
    return flat[:, :: max(1, flat.shape[1] // ELEMENTS)]


def _tensors(given: Any, depth: int = 3) -> Iterator[Any]:
    import torch

    if isinstance(given, torch.Tensor):
        yield given
    elif depth and isinstance(given, Mapping):
        for value in given.values():
            yield from _tensors(value, depth - 1)
    elif depth and isinstance(given, (list, tuple)) and len(given) <= 64:
        for value in given:
            yield from _tensors(value, depth - 1)
