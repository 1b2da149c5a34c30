"""Lab 01: which gradients 16 and 8 bits lose, and what a loss scale brings back."""

from __future__ import annotations

from ..formats import BF16, FORMATS, FP16, FP32, OF_8_BITS, NumberFormat
from ..panel import Axis, Chart, Curve, Drawn, Panel, Point, Slider, decades
from ..scale import share_said
from ..underflow import infinite_from, largest_relative_error, lost_to_infinity, lost_to_zero, zero_below

POWERS = range(0, 33)


NARROW: dict[str, NumberFormat] = {form.name: form for form in (FP16, *OF_8_BITS)}
"""What the menu offers: formats whose range is smaller than fp32's."""


def draw(median: float, spread: float, form: str, scale_power: int) -> Drawn:
    """The share of gradients that a narrow format loses, by loss scale; and how far formats round a number of a size."""
    narrow, scale = NARROW[form], 2.0**scale_power
    zero, above = lost_to_zero(narrow, scale, median, spread), lost_to_infinity(narrow, scale, median, spread)
    bf16 = lost_to_zero(BF16, 1.0, median, spread)
    said = (
        f"With a loss scale of 2^{scale_power}, {form} turns {share_said(zero)} of these gradients into 0 and "
        f"{share_said(above)} into {_beyond(narrow)}; bf16 turns {share_said(bf16)} into 0 without any scale. "
        f"{form} keeps sizes from {zero_below(narrow):.2g} to {infinite_from(narrow):,.0f}."
    )
    numbers = {"zero": zero, "above": above, "zero_in_bf16": bf16}
    charts = (_by_scale(narrow, median, spread, scale_power, zero), _by_size(narrow, median, scale))
    return Drawn(charts=charts, said=said, numbers=numbers)


def _beyond(form: NumberFormat) -> str:
    return "infinity" if form.has_infinity else f"{form.largest:g}, its largest number"


def _by_scale(form: NumberFormat, median: float, spread: float, scale_power: int, zero: float) -> Chart:
    x = tuple(float(power) for power in POWERS)
    above = "infinite" if form.has_infinity else "too large"
    return Chart(
        title="Gradients that are lost, by loss scale",
        x=Axis(label="loss scale", unit="power of 2", low=0, high=32),
        y=Axis(label="share of the gradients", percent=True, low=0, high=1.05),
        curves=(
            Curve(label=f"0 in {form.name}", x=x, y=tuple(lost_to_zero(form, 2.0**p, median, spread) for p in x)),
            Curve(label=f"{above} in {form.name}", x=x, y=tuple(lost_to_infinity(form, 2.0**p, median, spread) for p in x)),
            Curve(label="0 in bf16", x=x, y=tuple(lost_to_zero(BF16, 2.0**p, median, spread) for p in x), minor=True),
        ),
        points=(Point(label="your scale", x=float(scale_power), y=zero),),
    )


def _by_size(narrow: NumberFormat, median: float, scale: float) -> Chart:
    exponents = range(-50, 24)
    x = tuple(2.0**power for power in exponents)

    def errors(form: NumberFormat) -> tuple[float, ...]:
        return tuple(largest_relative_error(form, size) for size in x)

    drawn = FORMATS if narrow in FORMATS else (FP32, BF16, FP16, narrow)
    at = largest_relative_error(narrow, median * scale)
    return Chart(
        title="What rounding may do to a number",
        x=Axis(label="size of the number", log=True, low=x[0], high=x[-1]),
        y=Axis(label="largest relative error", log=True, low=1e-8, high=2),
        curves=tuple(Curve(label=form.name, x=x, y=errors(form)) for form in drawn),
        points=(Point(label="the median gradient, scaled", x=min(max(median * scale, x[0]), x[-1]), y=at),),
    )


PANEL = Panel(
    title="Which gradients does a narrow format lose?",
    sliders=(
        Slider(name="median", label="median size of a gradient", unit="", stops=decades(1e-12, 1.0), value=1e-7),
        Slider(name="spread", label="spread (one standard deviation)", unit="decades",
               stops=(0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0), value=1.0),
        Slider(name="form", label="number format", unit="", stops=tuple(NARROW), value=FP16.name),
        Slider(name="scale_power", label="loss scale", unit="power of 2", stops=tuple(POWERS), value=0),
    ),
    draw=draw,
    source="rounding to nearest, ties to even (IEEE 754; OFP8 for 8 bits); gradient sizes taken as log-normal",
)  # fmt: skip
