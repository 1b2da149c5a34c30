"""What a loader's batch holds: hashes of samples and labels, and where its tensors lie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...record.batches import digest_rows, samples_and_ids

LABELS = ("labels", "label", "targets", "target", "y")
"""Keys of a batch under which labels are."""


def memory_of(data: Any, depth: int = 3) -> frozenset[int]:
    """Where the tensors in some nested containers lie: the same for a view of one as for itself."""
    found: set[int] = set()
    _add_memory(data, depth, found)
    return frozenset(found)


def _add_memory(data: Any, depth: int, found: set[int]) -> None:
    import torch

    if isinstance(data, torch.Tensor):
        try:
            found.add(data.untyped_storage().data_ptr())
        except (NotImplementedError, RuntimeError):  # sparse, or without storage of its own
            return
    elif depth and isinstance(data, Mapping):
        for value in data.values():
            _add_memory(value, depth - 1, found)
    elif depth and isinstance(data, (list, tuple)) and len(data) <= 64:
        for value in data:
            _add_memory(value, depth - 1, found)


def contents_of(data: Any, *, labels: bool = True) -> tuple[list[int], int, list[int] | None] | None:
    """(a hash of each sample, elements of all, a hash of each label); None where a batch is nothing that has samples.

    Args:
        labels: whether they are asked for; None stands for them else.
    """
    try:
        samples = samples_and_ids(_without_masks(data), None)[0]
        digests = digest_rows(samples)
        elements = int(samples.numel() if hasattr(samples, "numel") else getattr(samples, "size", 0))
    except Exception:  # what a batch may be, nobody knows: then it is not counted
        return None
    return digests, elements, _targets(data, len(digests)) if labels else None


def _targets(data: Any, count: int) -> list[int] | None:
    """A hash of each sample's label, by the place or the names that labels usually have."""
    if isinstance(data, Mapping):
        label = next((data[key] for key in LABELS if key in data), None)
    else:
        label = data[1] if isinstance(data, (list, tuple)) and len(data) == 2 else None
    if label is None or getattr(label, "ndim", 0) != 1 or len(label) != count:
        return None
    try:
        return digest_rows(label)
    except Exception:
        return None


def _without_masks(data: Any) -> Any:
    """A mapping without what only says which places count: it is the same for many samples."""
    if not isinstance(data, Mapping):
        return data
    kept = {key: value for key, value in data.items() if "mask" not in str(key)}
    return kept or data
