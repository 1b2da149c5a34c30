"""What a probe refuses before it is written, since it could not be read again; and what torchrun says of a rank."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ..errors import UsageError
from ..words import plural
from .schema import Head


def one_each(call: str, name: str, digests: Sequence[int], ids: list[int]) -> list[int]:
    """The ids, if each sample has one."""
    if len(ids) != len(digests):
        raise UsageError(
            f"{call}({name!r}): {plural(len(digests), 'sample')} and {plural(len(ids), 'id')}; give one id a sample, in the "
            "order of the samples, or leave the ids out"
        )
    return ids


def check_head(head: Head) -> None:
    """Refuse a head that could be written and not be read."""
    try:
        msgspec.convert(msgspec.to_builtins(head), Head)
    except (msgspec.ValidationError, TypeError) as error:
        raise UsageError(f"a probe cannot begin its file: {error}; give it plain numbers and text") from error


def plain(call: str, values: Mapping[str, Any]) -> dict[str, int | float | str | bool]:
    """Values as JSON can hold them and the record can be read again: what cannot be is refused before it is written."""
    plain = {}
    for name, value in values.items():
        if getattr(value, "ndim", None) == 0:  # a number of numpy or torch
            value = value.item()
        if not isinstance(value, (bool, int, float, str)):
            raise UsageError(
                f"{call}: {name} must be a number, true or false, or text; given {type(value).__name__}; "
                "leave it out, or give its str()"
            )
        plain[name] = repr(value) if isinstance(value, float) and not math.isfinite(value) else value
    return plain


def from_torchrun(name: str, default: int) -> int:
    """What torchrun says of this process in a variable of its environment; `default` where it did not start it."""
    said = os.environ.get(name, "")
    try:
        return int(said) if said else default
    except ValueError:
        raise UsageError(
            f"{name} must be a whole number, as torchrun sets it; it is {said!r}; unset it, or give Probe {name.lower()}="
        ) from None
