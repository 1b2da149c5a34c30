"""Sliders over pictures: each move is answered by the kernel with new SVG. For the theory and for drawings in steps.

What is stored with a notebook is a PNG and text, so a page without a kernel reads well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..theory.panel import Slider
from ..words import short
from .picture import Picture
from .sketch import Sketch, beside
from .sketch_png import to_picture
from .svg import to_svg


@dataclass(frozen=True)
class Shown:
    """What is seen at some settings: pictures, and a sentence with their numbers."""

    sketches: tuple[Sketch, ...]
    said: str


class Moving:
    """Sliders, and what is drawn for where they stand. Show it as the last line of a cell.

    Args:
        title: what it shows.
        sliders: what may be moved.
        show: from the settings to what is seen; quick, since each move asks it.
        source: where what is seen is from.
        still: what is stored in place of what is seen at the start; None for that itself.
    """

    def __init__(
        self,
        title: str,
        sliders: tuple[Slider, ...],
        show: Callable[[Mapping[str, Any]], Shown],
        source: str,
        *,
        still: Sketch | None = None,
    ) -> None:
        self.title, self.sliders, self.source = title, sliders, source
        self._show, self._still = show, still

    def at(self, settings: Mapping[str, Any] | None = None) -> Shown:
        """What is seen at these settings, and at the start where one is not given."""
        return self._show({**{slider.name: slider.value for slider in self.sliders}, **(settings or {})})

    @cached_property
    def widget(self) -> Any:
        """The widget, made when it is first shown."""
        return _widget_of(self)

    @property
    def picture(self) -> Picture:
        """The stored picture: as at the start, with where the sliders stand, the sentence and the source in it."""
        if self._still is not None:
            return to_picture(Sketch(self._still.width, self._still.height, self._still.shapes, repr(self)))
        shown = self.at()
        sketch = beside(shown.sketches, [f"Set to: {self.settings_said}.", shown.said, self.source])
        return to_picture(Sketch(sketch.width, sketch.height, sketch.shapes, repr(self)))

    @property
    def settings_said(self) -> str:
        """Where the sliders begin, in words."""
        return "; ".join(f"{slider.label}: {stop_said(slider, slider.value)}" for slider in self.sliders)

    def save(self, path: Path | str) -> None:
        """Write the stored picture as a PNG."""
        self.picture.save(path)

    def __repr__(self) -> str:
        if self._still is not None:
            return f"{self.title}. {self._still.alt} {self.source}"
        shown = self.at()
        drawn = " ".join(sketch.alt for sketch in shown.sketches)
        return f"{self.title} {self.settings_said}. {shown.said} {drawn} {self.source}"

    def _repr_mimebundle_(self, include=None, exclude=None):
        bundle: Any = self.widget._repr_mimebundle_(include=include, exclude=exclude)
        data = dict(bundle[0] if isinstance(bundle, tuple) else bundle)
        still, metadata = self.picture._repr_mimebundle_()
        return data | still, metadata


def stop_said(slider: Slider, value: Any) -> str:
    """A value of a slider with its unit, as the panel says it."""
    if isinstance(value, str):
        return value
    if slider.unit == "bytes":
        from ..theory.scale import bytes_said

        return bytes_said(value)
    if slider.unit == "power of 2":
        return f"2^{value:g}"
    return f"{short(value)} {slider.unit}".rstrip()


def _widget_of(moving: Moving) -> Any:
    import anywidget
    import traitlets

    folder = Path(__file__).parent

    class MovingWidget(anywidget.AnyWidget):
        """The page's side: `controls` and `start` never change; `places` comes from the page, `shown` goes to it."""

        _esm = (folder / "moving.js").read_text(encoding="utf-8")
        _css = (folder / "moving.css").read_text(encoding="utf-8")
        title = traitlets.Unicode().tag(sync=True)
        source = traitlets.Unicode().tag(sync=True)
        controls = traitlets.List().tag(sync=True)
        start = traitlets.Dict().tag(sync=True)
        places = traitlets.Dict().tag(sync=True)
        shown = traitlets.Dict().tag(sync=True)

    start = {slider.name: slider.stops.index(slider.value) for slider in moving.sliders}
    controls = [
        {
            "name": slider.name,
            "label": slider.label,
            "menu": slider.is_menu,
            "stops": [stop_said(slider, stop) for stop in slider.stops],
        }
        for slider in moving.sliders
    ]
    widget = MovingWidget(
        title=moving.title,
        source=moving.source,
        controls=controls,
        start=start,
        places=start,
        shown=_for_the_page(moving.at()),
    )
    widget.observe(
        lambda change: setattr(widget, "shown", _for_the_page(moving.at(settings_of(moving, change["new"])))), "places"
    )
    return widget


def settings_of(moving: Moving, places: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a page means; a place that there is not is the nearest that there is."""
    settings = {}
    for slider in moving.sliders:
        place = places.get(slider.name, slider.stops.index(slider.value))
        settings[slider.name] = slider.stops[min(max(int(place), 0), len(slider.stops) - 1)]
    return settings


def _for_the_page(shown: Shown) -> dict[str, Any]:
    return {"svgs": [to_svg(sketch) for sketch in shown.sketches], "said": shown.said}
