"""What a run of a lab can be set to: fields with bounds and choices, and their values from a caller or the command line."""

from __future__ import annotations

import dataclasses
import functools
import numbers
import sys
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from ..errors import UnknownName, UsageError, shown

Config = TypeVar("Config")

_FINITE = Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def setting(default: Any, help: str, *, low: float | None = None, high: float | None = None, choices: tuple = ()) -> Any:
    """A configuration field with what `--set` and the panel need to know of it."""
    return dataclasses.field(default=default, metadata={"help": help, "low": low, "high": high, "choices": choices})


def configure(config_type: type[Config], settings: Mapping[str, Any]) -> Config:
    """Make a configuration from names and values; words, as the command line gives them, are converted.

    Args:
        config_type: a dataclass whose fields are settings; each is of the kind of its annotation.

    Raises:
        UnknownName: a name that is not a field, or a value that is not among the choices.
        UsageError: a value of the wrong kind or out of range.

    >>> @dataclasses.dataclass
    ... class Config:
    ...     batch: int = setting(32, "samples of one step", low=1, high=64)
    >>> configure(Config, {"batch": "8"})
    Config(batch=8)
    >>> configure(Config, {"batch": 0})
    Traceback (most recent call last):
    labkit.errors.UsageError: batch must be from 1 to 64; given 0
    """
    kinds = _kinds(config_type)
    unknown = [name for name in settings if name not in kinds]
    if unknown:
        raise UnknownName("setting", unknown[0], kinds)
    return config_type(**{name: _checked(name, value, *kinds[name]) for name, value in settings.items()})


@functools.cache
def _kinds(config_type: type) -> dict[str, tuple[Any, Mapping[str, Any]]]:
    """By name: the kind of each field, and what `setting` said of it."""
    hints = typing.get_type_hints(config_type)
    return {field.name: (hints[field.name], field.metadata) for field in dataclasses.fields(config_type)}  # pyright: ignore


def _checked(name: str, value: Any, kind: Any, meta: Mapping[str, Any]) -> Any:
    try:
        converted = _convert(value, _FINITE if kind is float else kind)
    except msgspec.ValidationError:
        raise UsageError(f"{name} must be {_WORDS.get(kind, kind)}; given {shown(value)}") from None
    try:
        return msgspec.convert(converted, _within(kind, meta))
    except msgspec.ValidationError:
        low, high = meta.get("low"), meta.get("high")
        if meta.get("choices"):
            raise UnknownName(name, converted, meta["choices"]) from None
        bounds = f"from {low} to {high}" if high is not None else f"at least {low}"
        raise UsageError(f"{name} must be {bounds}; given {shown(converted)}") from None


def _within(kind: Any, meta: Mapping[str, Any]) -> Any:
    """The kind, narrowed to the setting's choices or bounds."""
    if meta.get("choices"):
        return Literal[meta["choices"]]
    bounds = {msgspec_name: meta.get(name) for msgspec_name, name in (("ge", "low"), ("le", "high"))}
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    return Annotated[kind, msgspec.Meta(**given)] if given else kind


def _convert(value: Any, kind: Any) -> Any:
    """A value as its kind where nothing is lost: words are read, 8.0 is 8, and no number is true or false."""
    if isinstance(value, numbers.Number) and not isinstance(value, (bool, int)):
        value = getattr(value, "item", lambda: value)()  # numpy's numbers
    return msgspec.convert(value, kind, strict=not isinstance(value, (str, float)))
