"""How a noun shows itself in a notebook. The noun says that it does; what it looks like is known higher up.

A class that shows itself says `_repr_html_ = as_html`. The modules that know what each looks like register it with `look`
(`labkit.view.nouns`), and are loaded when the first noun is to be shown: `labkit` names them, which is loaded before any
part of it.
"""

from __future__ import annotations

import functools
import importlib

_known_by: list[str] = []


@functools.singledispatch
def look(noun: object) -> str:
    """A noun as HTML. Register a function for each class that shows itself.

    Raises:
        NotImplementedError: nobody registered what such a noun looks like.
    """
    raise NotImplementedError(f"nobody registered what a {type(noun).__name__} looks like")


def looks_are_known_by(module: str) -> None:
    """Name a module that registers looks as it is loaded. It is loaded when the first noun is to be shown.

    Args:
        module: its full name.
    """
    if module not in _known_by:
        _known_by.append(module)


def as_html(noun: object) -> str:
    """A noun as HTML, for notebooks: the method `_repr_html_` of classes that show themselves."""
    for module in _known_by:
        importlib.import_module(module)
    return look(noun)
