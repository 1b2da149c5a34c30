"""State dicts as tensors and one JSON document, and back: what a checkpoint holds is data, and nothing in it is run.

A state dict may hold dicts with keys of any simple kind, lists, tuples, tensors, numpy arrays and plain values. JSON has no
tuples and no keys but strings, so those are marked; floats come back to the bit, infinities and NaN too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from ..errors import CheckpointError
from ..record.batches import digest_tensors

Tensors = dict[str, torch.Tensor]


def pack(state: Any) -> tuple[str, Tensors]:
    """Split a state into (document, tensors); tensors are named by the path to them, such as `model.0.weight`.

    Raises:
        CheckpointError: a value that is neither data nor a tensor; names the path to it.
    """
    tensors: Tensors = {}
    return json.dumps(_take_apart(state, "", tensors)), tensors


def unpack(document: str, tensor_of: Callable[[str], torch.Tensor]) -> Any:
    """Put a state together again; `tensor_of` gives the tensor of a name.

    Raises:
        CheckpointError: a document that is not JSON, or nested too deeply.
    """
    try:
        return _put_together(json.loads(document), tensor_of)
    except (json.JSONDecodeError, RecursionError) as error:
        raise CheckpointError(f"the document of a checkpoint is damaged: {error}; go on from an earlier one") from error


def _take_apart(value: Any, path: str, tensors: Tensors) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float) and type(value) in (int, float):
        return value
    if isinstance(value, torch.Tensor | np.ndarray):
        name = path.removeprefix(".") or "value"
        while name in tensors:  # {"a.b": …} beside {"a": {"b": …}}
            name += "~"
        array = isinstance(value, np.ndarray)
        tensors[name] = torch.from_numpy(np.array(value, copy=True)) if array else value.detach()
        return {"array" if array else "tensor": name}
    if isinstance(value, np.generic):
        return _take_apart(value.item(), path, tensors)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str | int | float | bool | None):
                raise CheckpointError(f"{_shown(path)} has the key {key!r}; keys must be strings or numbers")
        return {"dict": [[key, _take_apart(item, f"{path}.{key}", tensors)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        items = [_take_apart(item, f"{path}.{index}", tensors) for index, item in enumerate(value)]
        return {"tuple": items} if isinstance(value, tuple) else items
    raise CheckpointError(
        f"{_shown(path)} is a {type(value).__name__}, which a checkpoint does not hold; "
        "give its state_dict(), or numbers, strings, lists, dicts, arrays and tensors"
    )


def _put_together(value: Any, tensor_of: Callable[[str], torch.Tensor]) -> Any:
    if isinstance(value, list):
        return [_put_together(item, tensor_of) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    match kind:
        case "tensor":
            return tensor_of(content)
        case "array":
            return tensor_of(content).numpy().copy()
        case "tuple":
            return tuple(_put_together(item, tensor_of) for item in content)
        case "dict":
            return {key: _put_together(item, tensor_of) for key, item in content}
    raise CheckpointError(f"a checkpoint's document holds a {kind!r}, which this labkit does not know")


def _shown(path: str) -> str:
    return f"state{path}" if path else "the state"


def text_tensor(text: str) -> torch.Tensor:
    """A text as a tensor of bytes, so that it travels with the tensors."""
    return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)


def tensor_text(tensor: torch.Tensor) -> str:
    """The text of `text_tensor`."""
    return tensor.numpy().tobytes().decode()


def digest_state(state: Any) -> str:
    """One hash over a state: equal hashes mean equal values, to the bit."""
    document, tensors = pack(state)
    content = [text_tensor(document), *(value for _, value in sorted(tensors.items()))]
    return digest_tensors(content)
