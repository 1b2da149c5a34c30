"""What a batch holds, as a record keeps it: which part is the samples, their ids, and hashes that tell them apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from ..errors import UsageError

if TYPE_CHECKING:
    import torch

_row_hash: Callable[[Any], int] = xxhash.xxh3_64_intdigest


def samples_and_ids(batch: Any, ids_at: int | str | None) -> tuple[Any, Any]:
    """The part of a batch that is the samples, an array with a row a sample, and the part that is their ids."""
    if hasattr(batch, "ndim"):
        return batch, None
    parts = _fields(batch)
    try:
        first = _samples_of(parts) if isinstance(parts, Mapping) else parts[0]
    except (TypeError, IndexError, KeyError, StopIteration):
        raise UsageError(
            f"a batch must be a tensor, a tuple that begins with the samples, or a mapping; given {type(batch).__name__}; "
            "read the loader without probe.batches, and in a step (probe.begin_step) call "
            'probe.samples("train", what the model is given)'
        ) from None
    try:
        ids = None if ids_at is None else parts[ids_at]
    except (KeyError, IndexError, TypeError):
        has = f"the keys {list(parts)}" if isinstance(parts, Mapping) else f"{len(parts)} parts"
        raise UsageError(
            f"ids_at={ids_at!r}, but a batch has {has}; give the place of the ids, or leave ids_at out"
        ) from None
    others = [ids] if ids is not None else [part for part in _values(parts) if part is not first]
    return as_rows(first, next((len(part) for part in others if _has_length(part)), None)), ids


def as_rows(samples: Any, count: int | None = None) -> Any:
    """Samples as one array with a row a sample: themselves, or of nested parts an array that holds a hash of each part.

    Args:
        samples: an array, or arrays nested in mappings, dataclasses, tuples and lists. Either the first dimension of each
            counts the samples, or each item of a list is a sample.
        count: how many samples there are, where something else in the batch tells.
    """
    if hasattr(samples, "ndim"):
        return samples
    leaves = list(_leaves(samples))
    lengths = sorted({len(leaf) for leaf in leaves})
    listed = isinstance(samples, (list, tuple)) and len(leaves) >= len(samples)
    if listed and len(samples) == count and lengths != [count]:
        hashes = [[_row_hash(np.array(digest_rows(leaf), np.uint64)) for leaf in _leaves(item)] for item in samples]
        return np.array([_row_hash(np.array(of_item, np.uint64)) for of_item in hashes], np.uint64)
    if len(lengths) == 1:
        return leaves[0] if len(leaves) == 1 else np.array([digest_rows(leaf) for leaf in leaves], np.uint64).T
    if lengths:
        raise UsageError(
            f"the samples of a batch must have one first dimension, a row a sample; given a {type(samples).__name__} whose "
            f"parts have {', '.join(map(str, lengths))} rows; read the loader without probe.batches, and in a step "
            '(probe.begin_step) call probe.samples("train", the part with a row a sample)'
        )
    raise UsageError(
        f"the samples of a batch must be a tensor or an array, a row a sample; given {type(samples).__name__}; give what "
        "the model is given, or an array of what tells the samples apart"
    )


def _samples_of(batch: Mapping[Any, Any]) -> Any:
    """The first value with more than a number a sample (labels and ids may come before the samples), else the first."""
    several = (value for value in batch.values() if any(leaf.ndim > 1 for leaf in _leaves(value)))
    return next(several, next(iter(batch.values())))


def _fields(batch: Any) -> Any:
    """A dataclass as the mapping of its fields; anything else as it is."""
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        return {field.name: getattr(batch, field.name) for field in dataclasses.fields(batch)}
    return batch


def _values(parts: Any) -> Iterable[Any]:
    return parts.values() if isinstance(parts, Mapping) else parts


def _has_length(part: Any) -> bool:
    """Whether a part of a batch counts the samples: an array, or a list with an item a sample."""
    return getattr(part, "ndim", 0) > 0 if hasattr(part, "ndim") else isinstance(part, (list, tuple))


def _leaves(part: Any) -> Iterator[Any]:
    """The arrays in a part of a batch, in order; numbers, text and None are none."""
    part = _fields(part)
    if hasattr(part, "ndim"):
        if part.ndim:
            yield part
    elif isinstance(part, (Mapping, list, tuple)):
        for value in _values(part):
            yield from _leaves(value)


def digest_rows(batch: Any) -> list[int]:
    """64-bit xxh3 of each sample's bytes: [B, …] -> B integers. On a GPU tensor this copies to the host.

    Of nested parts (mappings, tuples, lists, dataclasses) those of a sample together; see `as_rows`.
    """
    if isinstance(batch, np.generic):
        batch = np.asarray(batch)
    batch = as_rows(batch)
    rows: Any = batch if isinstance(batch, np.ndarray) else _as_numpy(batch)
    if not rows.flags.c_contiguous:
        rows = np.ascontiguousarray(rows)
    if rows.ndim < 2:
        rows = rows.reshape(-1, 1)
    return list(map(_row_hash, rows))


def digest_tensors(tensors: Iterable[torch.Tensor]) -> str:
    """128-bit xxh3 over the bytes of several tensors, in order, as hex."""
    state = xxhash.xxh3_128()
    for tensor in tensors:
        state.update(np.ascontiguousarray(_as_numpy(tensor)).data)
    return state.hexdigest()


def _as_numpy(tensor: torch.Tensor) -> np.ndarray:
    """The tensor's bits as an array; numpy has no bfloat16 or float8, whose bytes stand for them."""
    tensor = tensor.detach().cpu()
    try:
        return tensor.numpy()
    except TypeError:
        import torch

        return tensor.contiguous().reshape(-1, 1).view(torch.uint8).reshape(*tensor.shape, -1).numpy()


def as_ints(ids: torch.Tensor | Sequence[int]) -> list[int]:
    whole = ids.tolist() if hasattr(ids, "tolist") else [int(i) for i in ids]  # pyright: ignore[reportAttributeAccessIssue]
    if not isinstance(whole, list) or (whole and not isinstance(whole[0], int)):
        raise UsageError(f"ids must be a row of whole numbers, one a sample; given {ids!r:.60}; or leave them out")
    if whole and not (min(whole) >= -(2**63) and max(whole) < 2**63):
        raise UsageError(
            f"an id must fit in 64 bits, sign included; given {max(whole, key=abs)}; leave the ids out: samples are told "
            "apart by their bytes"
        )
    return whole
