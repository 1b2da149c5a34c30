"""Tensors as short hashes, so that ranks can be compared by their records: nothing is sent, and nothing is changed.

A token is eight hexadecimal digits. Before those of a DTensor stands what it is a part of: ranks that hold the same part
must have the same token. What cannot be read is "-", what is not there is "0".
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import xxhash

WHOLE_BYTES = 2**16
"""Tensors up to this size are hashed whole; of larger ones so many bytes, spread evenly."""

MOST = 256
"""Tensors of a model that have a token of their own; of more, neighbours share one."""

UNREAD, NOTHING = "-", "0"

_PARTS = 16
_SHARDED = ("DTensor", "ShardedTensor", "FlatParameter")


def is_sharded(tensor: Any) -> bool:
    """Whether a tensor is a part of a larger one, by its type."""
    return any(kind.__name__ in _SHARDED for kind in type(tensor).__mro__)


def is_readable(tensor: Any) -> bool:
    """Whether the values of a plain tensor are there: a wrapper that shards lets the memory of whole ones go, and reading
    it then ends the process."""
    import torch

    if type(tensor) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) or tensor.layout is not torch.strided:
        return False
    if tensor.device.type == "meta" or tensor.is_quantized:
        return False
    if not tensor.numel():
        return True
    last = tensor.storage_offset() + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.untyped_storage().nbytes() >= (last + 1) * tensor.element_size()


def token(tensor: Any) -> str:
    """The token of a tensor; None is NOTHING."""
    if tensor is None:
        return NOTHING
    kinds = {kind.__name__ for kind in type(tensor).__mro__}
    try:
        if "DTensor" in kinds:
            return _of_part(tensor)
        return _digits(tensor) if is_readable(tensor) else UNREAD
    except Exception:  # what a subclass of a tensor allows, nobody knows
        return UNREAD


def _of_part(tensor: Any) -> str:
    mesh, at = tensor.device_mesh, tensor.device_mesh.get_coordinate()
    if at is None or not is_readable(tensor._local_tensor):
        return UNREAD
    own = [(dim, at[dim]) for dim, placement in enumerate(tensor.placements) if not placement.is_replicate()]
    part = xxhash.xxh3_64_hexdigest(f"{tuple(mesh.shape)} {tensor.placements} {own}".encode())[:6]
    return f"{part}:{_digits(tensor._local_tensor)}"


def _digits(tensor: Any) -> str:
    return xxhash.xxh3_64_hexdigest(_bytes(sampled(tensor)))[:8] if tensor.numel() else NOTHING


def tokens(tensors: Sequence[Any]) -> list[str]:
    """A token a tensor; of more than MOST tensors, neighbours share one."""
    each = [token(tensor) for tensor in tensors]
    return [_together(each[first:last]) for first, last in shares(len(each))]


def shares(count: int) -> list[tuple[int, int]]:
    """[first, last) of the tensors that share a token."""
    size = -(-count // MOST) if count > MOST else 1
    return [(first, min(first + size, count)) for first in range(0, count, size)]


def _together(each: list[str]) -> str:
    if len(each) == 1:
        return each[0]
    if any(":" in one or one == UNREAD for one in each):
        return UNREAD
    return xxhash.xxh3_64_hexdigest(" ".join(each).encode())[:8]


def whole(tensors: Iterable[Any]) -> str:
    """One hash of several plain tensors, in order."""
    state = xxhash.xxh3_64()
    for tensor in tensors:
        if is_readable(tensor) and tensor.numel():
            state.update(_bytes(sampled(tensor)))
    return state.hexdigest()


def sampled(tensor: Any) -> Any:
    """The elements that are looked at, flat."""
    flat = tensor.detach().reshape(-1)
    return _some(flat) if flat.numel() * flat.element_size() > WHOLE_BYTES else flat


def _some(flat: Any) -> Any:
    import torch

    each = WHOLE_BYTES // _PARTS // flat.element_size()
    starts = [at * (flat.numel() - each) // (_PARTS - 1) for at in range(_PARTS)]
    return torch.cat([flat[start : start + each] for start in starts])


def _bytes(flat: Any) -> Any:
    import torch

    return flat.contiguous().cpu().view(torch.uint8).numpy().data


def size_and_mark(tensors: Iterable[Any]) -> tuple[float, float]:
    """(norm, mark) of the elements that are looked at: the mark is their sum, each weighted by a cosine of its place, so
    that by how much two marks differ says how far two models are apart."""
    squares = mark = 0.0
    for tensor in tensors:
        if is_readable(tensor) and tensor.numel() and tensor.is_floating_point():
            values = sampled(tensor).cpu().double()
            squares += float(values.dot(values))
            mark += float(values.dot(_weights()[: len(values)]))
    return squares**0.5, mark


@functools.cache
def _weights() -> Any:
    import torch

    return torch.cos(torch.arange(WHOLE_BYTES, dtype=torch.float64))


def of_state(state: Mapping[Any, Any], parameters: Sequence[Any]) -> str:
    """One hash of what an optimizer keeps for these parameters; empty where a part of it cannot be read."""
    found = xxhash.xxh3_64()
    for parameter in parameters[:MOST]:
        of_one = state.get(parameter, {})
        for name in sorted(of_one, key=str):
            value = of_one[name]
            said = token(value) if hasattr(value, "untyped_storage") else repr(value)
            if said == UNREAD or ":" in said:
                return ""
            found.update(f"{name} {said}".encode())
    return found.hexdigest()
