"""A panel of the theory, to move: what `lab.theory()` gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..theory.panel import Panel
from .charts import to_sketch
from .moving import Moving, Shown


class TheoryPanel(Moving):
    """One formula under the finger; a record's point lies on it as measured.

    Attributes:
        panel: what it shows, as data: sliders, curves, points, the formula's source.
    """

    def __init__(self, panel: Panel) -> None:
        self.panel = panel

        def show(settings: Mapping[str, Any]) -> Shown:
            drawn = panel.shown(settings)
            return Shown(tuple(to_sketch(chart) for chart in drawn.charts), drawn.said)

        super().__init__(panel.title, panel.sliders, show, f"Curves are simulated: {panel.source}.")

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers at the start, by name: for an assert in a lesson."""
        return dict(self.panel.shown().numbers)
