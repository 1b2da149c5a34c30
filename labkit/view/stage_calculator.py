"""A calculator of what fits: which stage, what it keeps and what it sends. By formula: simulated."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from ..theory.zero import GB, RECIPES, RESERVE_GB, STAGE_NAMES, cheapest, choices, fewest_ranks
from ..words import short
from .calculators import WIDE, Calculator
from .cards import SMALL, box, escape

SOURCE = "simulated: the formulas of arXiv:1910.02054; activations count only as what you set aside"


class StageCalculator(Calculator):
    """Which stage of ZeRO fits, and what it sends.

    Args:
        given: initial values of billions, devices, memory_gb, reserve_gb, recipe.
    """

    def __init__(self, **given: Any) -> None:
        def entry(value: float, low: float, high: float, name: str) -> Any:
            return widgets.BoundedFloatText(value=value, min=low, max=high, description=name, style=WIDE)

        controls = {
            "billions": entry(72, 1e-6, 1e6, "parameters, 1e9"),
            "devices": widgets.BoundedIntText(value=8, min=1, max=10**6, description="devices", style=WIDE),
            "memory_gb": entry(80, 0.001, 1e6, "GB of each"),
            "reserve_gb": entry(RESERVE_GB, 0, 1e6, "GB set aside"),
            "recipe": widgets.Dropdown(options=list(RECIPES), value="mixed Adam", description="recipe", style=WIDE),
        }
        super().__init__(None, controls, given)  # pyright: ignore[reportArgumentType]

    def answer(self) -> str:
        s = self.settings()
        params, memory = s["billions"] * 1e9, s["memory_gb"] * GB
        options: dict[str, Any] = {"kept": s["recipe"], "reserve_bytes": s["reserve_gb"] * GB}
        found = choices(params, s["devices"], memory, **options)
        takes = ", ".join(f"{STAGE_NAMES[c.stage]} {short(c.state_bytes / GB)}" for c in found)
        room = f"{s['memory_gb']:g} GB each, {s['reserve_gb']:g} of them set aside"
        text = f"{s['billions']:g} B parameters on {s['devices']:,} devices of {room}. State takes, in GB: {takes}."
        best = cheapest(params, s["devices"], memory, **options)
        if best is not None:
            sent = f"a rank sends {best.sent_elements / 1e9:,.3g}e9 elements a step"
            return f"{text} The cheapest that fits is {STAGE_NAMES[best.stage]}; {sent}."
        fewest = fewest_ranks(params, memory, **options)
        return f"{text} None fits" + (f"; ZeRO-3 would on {fewest:,} devices." if fewest else ", on any number of devices.")

    def __repr__(self) -> str:
        return f"{self.answer()} ({SOURCE})"

    def _repr_html_(self) -> str:
        return box(f"{escape(self.answer())}<div style='{SMALL}'>{escape(SOURCE)}</div>")
