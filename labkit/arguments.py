"""Arguments of public functions, held to their annotations at the call: an error names the argument, not a place inside."""

from __future__ import annotations

import collections.abc
import functools
import inspect
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from .errors import UsageError, shown

Given = ParamSpec("Given")
Result = TypeVar("Result")

_WORDS = {
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    str: "text",
    Path: "a path",
    type(None): "None",
}
_NUMBERS = {int: int, float: (int, float)}


def checked(*, but: tuple[str, ...] = ()) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Have a function refuse, before it does anything, an argument that is not of the annotated kind.

    Args:
        but: parameters that the function looks at itself, to say more of them.
    """

    def decorate(function: Callable[Given, Result]) -> Callable[Given, Result]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: Given.args, **kwargs: Given.kwargs) -> Result:
            bound = signature.bind(*args, **kwargs)  # a TypeError names a parameter that there is not
            for name, value in bound.arguments.items():
                if name not in but:
                    _check(function, signature.parameters[name], value)
            return function(*args, **kwargs)

        return call

    return decorate


def check_fields(one: Any) -> None:
    """Hold the fields of a dataclass to their annotations.

    Raises:
        UsageError: names the field.
    """
    for name, hint in _hints(type(one)).items():
        _refuse(name, getattr(one, name), hint)


def _check(function: Callable[..., Any], parameter: inspect.Parameter, value: Any) -> None:
    hint = _hints(function).get(parameter.name)
    if hint is None:
        return
    several = {parameter.VAR_POSITIONAL: tuple, parameter.VAR_KEYWORD: dict.values}.get(parameter.kind)
    for each in (value,) if several is None else several(value):
        _refuse(parameter.name, each, hint)


@functools.cache
def _hints(of: Any) -> dict[str, Any]:
    return typing.get_type_hints(of)


def _refuse(name: str, value: Any, hint: Any) -> None:
    if not _fits(value, hint):
        raise UsageError(f"{name} must be {words_of(hint)}; given {shown(value)}, which is of type {type(value).__name__}")


def _fits(value: Any, hint: Any) -> bool:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or hint is object or isinstance(hint, TypeVar):
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is typing.Literal:
        return any(value is each or value == each for each in inner if type(value) is type(each))
    if origin is collections.abc.Callable or hint is collections.abc.Callable:
        return callable(value)
    if origin is collections.abc.Iterable:
        if isinstance(value, (str, bytes)) or not isinstance(value, collections.abc.Iterable):
            return False
        return not isinstance(value, (list, tuple)) or all(_fits(each, inner[0]) for each in value)
    kind = _NUMBERS.get(hint, origin or hint)
    return isinstance(value, kind) and not (isinstance(value, bool) and hint in _NUMBERS)


def words_of(hint: Any) -> str:
    """An annotation as a person says it: "a whole number or None"."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        *first, last = dict.fromkeys(words_of(each) for each in inner)
        return f"{', '.join(first)} or {last}" if first else last
    if origin is typing.Literal:
        return f"one of {', '.join(map(repr, inner))}"
    if origin is collections.abc.Callable or hint is collections.abc.Callable:
        return "a function"
    if origin is collections.abc.Iterable:
        return f"a list, each of it {words_of(inner[0])}"
    return _WORDS.get(hint) or f"a {getattr(hint, '__name__', hint)}"
