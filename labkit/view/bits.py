"""One number in several formats, bit by bit: what survives, what is lost, what overflows or becomes 0.

`Bits` is a still picture of one number, as HTML and as text. `BitsPanel` lets a reader drag the number.
"""

from __future__ import annotations

import math
from typing import Any

import ipywidgets as widgets

from ..errors import UsageError
from ..theory.formats import FORMATS, FP32, Rounded
from . import palette
from .cards import box, escape

PARTS = (("sign", palette.PURPLE, "s"), ("exponent", palette.ORANGE, "e"), ("significand", palette.BLUE, "f"))
"""Part of a number, its colour, and the letter above its bits."""

_FATE_COLOUR = {
    "exact": palette.GREEN,
    "rounded": palette.BLUE,
    "subnormal": palette.ORANGE,
    "underflow": palette.VERMILION,
    "overflow": palette.VERMILION,
    "not a number": palette.VERMILION,
}
_FATE_MARK = {"exact": "=", "rounded": "≈", "subnormal": "↓", "underflow": "0", "overflow": "∞", "not a number": "?"}
_FATE_WORDS = {
    "exact": "kept exactly",
    "rounded": "rounded",
    "subnormal": "fewer digits",
    "underflow": "becomes 0",
    "overflow": "becomes infinite",
    "not a number": "not a number",
}
_CELL = "display:inline-block;width:.85em;text-align:center;margin-right:1px;border-radius:2px"
_COLUMN = "text-align:left;padding:.15em .7em;white-space:nowrap"


class Bits:
    """What fp32, tf32, bf16 and fp16 keep of a number.

    Args:
        value: any number, infinity and NaN included.

    Attributes:
        stored: by format's name, what it keeps.
    """

    def __init__(self, value: float) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise UsageError(f"give one number, as in Bits(0.1); given {value!r}")
        self.value = _as_float(value)
        self.stored: dict[str, Rounded] = {form.name: form.round(self.value) for form in FORMATS}

    def __repr__(self) -> str:
        lines = [f"{self.value!r}, bit by bit (computed)"]
        for name, kept in self.stored.items():
            bits = f"{kept.sign} {kept.exponent:>8} {kept.significand:<{FP32.significand_bits}}"
            lines.append(f"{name:<5} {bits}  {kept.value!r:<24} {_error(kept):<16} {_FATE_WORDS[kept.fate]}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = "".join(
            f"<th style='{_COLUMN}'>{title}</th>"
            for title in ("", _legend(), "value stored", "relative error", "what became of it")
        )
        rows = "".join(_row(name, kept) for name, kept in self.stored.items())
        return box(
            f"<strong>{escape(repr(self.value))}, bit by bit</strong>"
            f"<div style='overflow-x:auto'><table style='margin:.3em 0'><tr>{head}</tr>{rows}</table></div>"
            "<div style='font-size:85%;opacity:.8'>computed: to nearest, ties to even · a grey dot is a bit that fp32 has "
            "and this format has not</div>"
        )


class BitsPanel:
    """A number to drag or to type, and what each format keeps of it. Show it as the last line of a cell.

    Args:
        value: to begin with.
    """

    def __init__(self, value: float = 0.1) -> None:
        self._slider = widgets.FloatLogSlider(
            value=1.0, base=10, min=-46, max=39, step=0.01, description="size", readout=False,
            layout=widgets.Layout(width="34em"), style={"description_width": "4em"},
        )  # fmt: skip
        self._negative = widgets.Checkbox(value=False, description="negative", indent=False)
        self._entry = widgets.Text(
            description="or type",
            continuous_update=False,
            placeholder="65505, 2**-24, 1e-4, inf",
            style={"description_width": "4em"},
        )
        self._note, self._shown = widgets.HTML(), widgets.HTML()
        self._moving = False
        self._slider.observe(self._dragged, "value")
        self._negative.observe(self._dragged, "value")
        self._entry.observe(self._typed, "value")
        self.widget = widgets.VBox([self._slider, widgets.HBox([self._entry, self._negative]), self._note, self._shown])
        self.show(Bits(value))

    def show(self, bits: Bits) -> None:
        """Show a number; the slider, the sign and the entry follow."""
        self.bits = bits
        self._moving = True
        try:
            size = abs(bits.value)
            if math.isfinite(size) and size:
                self._slider.value = min(max(size, 1e-46), 1e39)
            self._negative.value = math.copysign(1.0, bits.value) < 0
            self._entry.value = repr(bits.value)
        finally:
            self._moving = False
        self._note.value = ""
        self._shown.value = bits._repr_html_()

    def _dragged(self, _change: Any) -> None:
        if not self._moving:
            size = float(f"{self._slider.value:.4g}")
            self.show(Bits(-size if self._negative.value else size))

    def _typed(self, _change: Any) -> None:
        if self._moving:
            return
        try:
            self.show(Bits(number(self._entry.value)))
        except UsageError as error:
            self._note.value = f"<span style='color:{palette.VERMILION}'>✗ {escape(str(error))}</span>"

    def __repr__(self) -> str:
        return repr(self.bits)

    def _repr_mimebundle_(self, include=None, exclude=None):
        bundle: Any = self.widget._repr_mimebundle_(include=include, exclude=exclude)
        data = dict(bundle[0] if isinstance(bundle, tuple) else bundle)
        return data | {"text/html": self.bits._repr_html_(), "text/plain": repr(self.bits)}


def number(text: str) -> float:
    """A number from what a reader typed: a decimal, a power as in 2**-24, inf or nan.

    Raises:
        UsageError: anything else.
    """
    base, power, exponent = text.replace(" ", "").replace("^", "**").partition("**")
    sign = -1.0 if power and base.startswith("-") else 1.0  # the minus is not raised to the power
    try:
        return _as_float(sign * float(base.lstrip("-")) ** float(exponent) if power else float(base))
    except (ValueError, OverflowError, ZeroDivisionError, TypeError):
        raise UsageError(f"give a number such as 0.1, 65505, 1e-8, 2**-24 or inf; given {text!r}") from None


def _as_float(value: float) -> float:
    try:
        return float(value)
    except (OverflowError, TypeError):
        raise UsageError(f"give a number up to 1.8e308, which is what a 64-bit float holds; given {value!r}") from None


def _error(kept: Rounded) -> str:
    error = kept.relative_error
    return "" if error is None else "error 0" if error == 0 else f"error {error:.1e}"


def _legend() -> str:
    return " ".join(f"<span style='color:{colour}'>{letter} = {part}</span>" for part, colour, letter in PARTS)


def _row(name: str, kept: Rounded) -> str:
    colour = _FATE_COLOUR[kept.fate]
    fate = f"<span style='color:{colour};font-weight:bold'>{_FATE_MARK[kept.fate]} {_FATE_WORDS[kept.fate]}</span>"
    cells = (
        f"<strong>{name}</strong>",
        _bits(kept),
        f"<code style='white-space:nowrap'>{kept.value:.9g}</code>",
        escape(_error(kept).removeprefix("error ")),
        fate,
    )
    return "<tr>" + "".join(f"<td style='{_COLUMN}'>{cell}</td>" for cell in cells) + "</tr>"


def _bits(kept: Rounded) -> str:
    """The bits in fp32's columns: an exponent to the right, a significand to the left, dots where bits are missing."""
    groups = []
    for (part, colour, letter), width in zip(PARTS, (1, FP32.exponent_bits, FP32.significand_bits), strict=True):
        bits: str = getattr(kept, part)
        gap = width - len(bits)
        marks = "".join(f"<span style='{_CELL};background:{colour};color:white'>{bit}</span>" for bit in bits)
        missing = f"<span style='{_CELL};color:{palette.GREY}'>·</span>" * gap
        label = f"<span style='font-size:70%;color:{colour};margin-right:2px'>{letter}</span>"
        groups.append(label + (marks + missing if part == "significand" else missing + marks))
    return f"<span style='font-family:monospace'>{'&nbsp;'.join(groups)}</span>"
