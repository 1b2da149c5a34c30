"""What a batch holds, as a record keeps it: which part is the samples, their ids, and hashes that tell them apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from ..errors import UsageError

if TYPE_CHECKING:
    import torch

_row_hash = xxhash.xxh3_64_intdigest


def samples_and_ids(batch: Any, ids_at: int | str | None) -> tuple[Any, Any]:
    """The part of a batch that is the samples, and the part that is their ids."""
    if hasattr(batch, "ndim"):
        return batch, None
    try:
        first = _samples_of(batch) if isinstance(batch, Mapping) else batch[0]
    except (TypeError, IndexError, KeyError, StopIteration):
        raise UsageError(
            f"a batch must be a tensor, a tuple that begins with the samples, or a mapping; given {type(batch).__name__}; "
            "read the loader without probe.batches, and in a step (probe.begin_step) call "
            'probe.samples("train", what the model is given)'
        ) from None
    try:
        return first, None if ids_at is None else batch[ids_at]
    except (KeyError, IndexError):
        has = f"the keys {list(batch)}" if isinstance(batch, Mapping) else f"{len(batch)} parts"
        raise UsageError(
            f"ids_at={ids_at!r}, but a batch has {has}; give the place of the ids, or leave ids_at out"
        ) from None


def _samples_of(batch: Mapping[Any, Any]) -> Any:
    """The first value with more than a number a sample (labels and ids may come before the samples), else the first."""
    return next((value for value in batch.values() if getattr(value, "ndim", 0) > 1), next(iter(batch.values())))


def digest_rows(batch: torch.Tensor | np.ndarray) -> list[int]:
    """64-bit xxh3 of each sample's bytes: [B, …] -> B integers. On a GPU tensor this copies to the host."""
    if isinstance(batch, np.generic):
        batch = np.asarray(batch)
    if not hasattr(batch, "ndim"):
        raise UsageError(
            f"the samples of a batch must be a tensor or an array, a row a sample; given {type(batch).__name__}; give what "
            "the model is given, or an array of what tells the samples apart"
        )
    rows: Any = batch if isinstance(batch, np.ndarray) else _as_numpy(batch)
    if not rows.flags.c_contiguous:
        rows = np.ascontiguousarray(rows)
    if rows.ndim < 2:
        rows = rows.reshape(-1, 1)
    return list(map(_row_hash, rows))  # pyright: ignore[reportArgumentType]


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
