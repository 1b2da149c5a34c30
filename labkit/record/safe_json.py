"""JSON that somebody else wrote, as a typed value whose text may be shown anywhere."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from ..words import printable

Kind = TypeVar("Kind")


def decoded(raw: bytes, decoder: msgspec.json.Decoder[Kind]) -> Kind:
    """JSON as a typed value, its text made safe to show.

    Raises:
        msgspec.DecodeError: malformed, of another type, beyond a bound, or nested too deeply.
    """
    try:
        value = decoder.decode(raw)
        if b"\\" in raw or b"\x7f" in raw or not (raw.isascii() or raw.decode().isprintable()):
            value = msgspec.convert(_shown(msgspec.json.decode(raw)), decoder.type)
        return value
    except RecursionError:
        raise msgspec.DecodeError("it is nested more deeply than any record") from None
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from error


def _shown(value: Any) -> Any:
    """A tree of plain values, each text in it as it may be shown."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(name): _shown(each) for name, each in value.items()}
    return [_shown(each) for each in value] if isinstance(value, list) else value
