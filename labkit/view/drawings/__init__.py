"""One drawing of each mechanism, by name. Each is made from a few numbers, exact for them, and says in words what it shows.

A file of this folder declares the drawings that it makes: `DRAWINGS`, from a name to its function. Where a drawing can be
gone through step by step, `STEPS` has the same name with what moves it.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...errors import UnknownName, UsageError
from ..moving import Moving
from ..picture import Picture
from ..sketch import Sketch
from ..sketch_png import to_picture
from ..svg import to_svg


@functools.cache
def _declared(what: str) -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {}
    for module in pkgutil.iter_modules(__path__):
        found |= getattr(importlib.import_module(f"{__name__}.{module.name}"), what, {})
    return found


def every_drawing() -> dict[str, Callable[..., Sketch]]:
    """The drawings that there are, by name."""
    return dict(_declared("DRAWINGS"))


def every_stepper() -> dict[str, Callable[..., Moving]]:
    """The drawings that can be gone through step by step, by name."""
    return dict(_declared("STEPS"))


class Drawing:
    """A drawing with its words: SVG that is light or dark as the reader prefers, and a PNG where no SVG is shown."""

    def __init__(self, sketch: Sketch) -> None:
        self.sketch = sketch

    @property
    def svg(self) -> str:
        """The drawing as SVG."""
        return to_svg(self.sketch)

    @property
    def picture(self) -> Picture:
        """The drawing as a PNG, in light colours."""
        return to_picture(self.sketch)

    def save(self, path: Path | str, *, dark: bool = False) -> None:
        """Write an SVG or a PNG, by the path's ending; `dark` is for a PNG, an SVG has both."""
        if str(path).endswith(".svg"):
            Path(path).write_text(self.svg, encoding="utf-8")
        else:
            to_picture(self.sketch, dark=dark).save(path)

    def __repr__(self) -> str:
        return self.sketch.alt

    def _repr_mimebundle_(self, include=None, exclude=None):
        still, metadata = self.picture._repr_mimebundle_()
        return {"image/svg+xml": self.svg, **still}, metadata


def drawing(name: str, **numbers: Any) -> Drawing:
    """Draw a mechanism: `drawing("ring", ranks=4)`.

    Args:
        name: "ring", "buckets", "shards", "parameter-server", "sampler", "checkpoint", "loss-scale", "step-time", "loader".
        numbers: what it is drawn for, each with a default.

    Raises:
        UnknownName: there is no such drawing.
        UsageError: a number that it does not have, or cannot be drawn for.
    """
    return Drawing(_asked(every_drawing(), "drawing", name, numbers))


def steps(name: str, **numbers: Any) -> Moving:
    """The same drawing to go through step by step: `steps("ring", ranks=4)`.

    Raises:
        UnknownName: there is no such drawing, or it has no steps.
        UsageError: a number that it does not have, or cannot be drawn for.
    """
    return _asked(every_stepper(), "drawing with steps", name, numbers)


def _asked(known: dict[str, Callable[..., Any]], what: str, name: str, numbers: dict[str, Any]) -> Any:
    if name not in known:
        raise UnknownName(what, name, known)
    taken = inspect.signature(known[name]).parameters
    if unknown := [each for each in numbers if each not in taken]:
        raise UsageError(f"the drawing {name} has no {', '.join(unknown)}; it takes {', '.join(taken) or 'nothing'}")
    return known[name](**numbers)


def whole(name: str, value: Any, low: int, high: int) -> int:
    """A whole number that can be drawn.

    Raises:
        UsageError: it is none, or out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise UsageError(f"{name} is a whole number from {low} to {high} in this drawing; given {value!r}")
    return value
