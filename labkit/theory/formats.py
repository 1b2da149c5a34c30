"""Binary floating-point formats, computed by the definition (IEEE 754) in exact integers; no torch, no hardware involved.

A finite number is (-1)^sign · significand · 2^exponent. fp32 has 8 exponent bits and 23 of the significand, tf32 8 and 10
(NVIDIA A100 whitepaper, 2020), bf16 8 and 7, fp16 5 and 10. Rounding is to nearest, ties to even.
The two formats of 8 bits are those of the Open Compute Project (OFP8 specification, 2023): E5M2 is as IEEE 754 has it, and
E4M3 uses the exponent that would stand for infinity for numbers, so that it ends at 448 and has no infinity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from ..errors import UnknownName

Fate = Literal["exact", "rounded", "subnormal", "underflow", "overflow", "not a number"]


@dataclass(frozen=True)
class NumberFormat:
    """A format with a sign, `exponent_bits` and `significand_bits` (those stored, without the leading 1).

    Attributes:
        name: as people call it.
        torch_name: the dtype of torch, empty for tf32, which exists inside matrix units only.
        bits: that a stored number takes in memory; tf32 is kept as fp32.
        has_infinity: whether too large a number becomes infinite; without one it becomes the largest, as torch converts.
    """

    name: str
    torch_name: str
    exponent_bits: int
    significand_bits: int
    bits: int
    has_infinity: bool = True

    @property
    def bias(self) -> int:
        return 2 ** (self.exponent_bits - 1) - 1

    @property
    def largest(self) -> float:
        """The largest finite number: what rounds beyond it becomes infinite."""
        gap = Fraction(1, 2**self.significand_bits)
        if self.has_infinity:
            return float((2 - gap) * Fraction(2) ** self.bias)
        return float((2 - 2 * gap) * Fraction(2) ** (self.bias + 1))  # all ones are NaN

    @property
    def smallest_normal(self) -> float:
        """The smallest number with all bits of its significand; below it precision goes bit by bit."""
        return 2.0 ** (1 - self.bias)

    @property
    def smallest_subnormal(self) -> float:
        """The smallest number above 0; half of it and less becomes 0."""
        return 2.0 ** (1 - self.bias - self.significand_bits)

    @property
    def epsilon(self) -> float:
        """The gap between 1 and the next number."""
        return 2.0**-self.significand_bits

    def round(self, value: float) -> Rounded:
        """What is left of a number in this format.

        >>> [form.round(1e-8).fate for form in FORMATS]
        ['rounded', 'rounded', 'rounded', 'underflow']
        >>> BF16.round(256 + 1).value  # there is no room for the last bit
        256.0
        """
        return _in_bits(self, value)


@dataclass(frozen=True)
class Rounded:
    """A number as a format keeps it.

    Attributes:
        format: which.
        given: what was to be rounded.
        value: what is left of it.
        sign, exponent, significand: the bits, as text of 0 and 1.
        fate: what became of it.
    """

    format: NumberFormat
    given: float
    value: float
    sign: str
    exponent: str
    significand: str
    fate: Fate

    @property
    def relative_error(self) -> float | None:
        """|value - given| / |given|; None where that is no number."""
        if not (math.isfinite(self.given) and math.isfinite(self.value)):
            return None
        if self.given == 0:
            return 0.0
        return float(abs((Fraction(self.value) - Fraction(self.given)) / Fraction(self.given)))


FP32 = NumberFormat("fp32", "float32", 8, 23, 32)
TF32 = NumberFormat("tf32", "", 8, 10, 32)
BF16 = NumberFormat("bf16", "bfloat16", 8, 7, 16)
FP16 = NumberFormat("fp16", "float16", 5, 10, 16)
FORMATS = (FP32, TF32, BF16, FP16)
E5M2 = NumberFormat("fp8 e5m2", "float8_e5m2", 5, 2, 8)
E4M3 = NumberFormat("fp8 e4m3", "float8_e4m3fn", 4, 3, 8, has_infinity=False)
OF_8_BITS = (E5M2, E4M3)


def number_format(name: str) -> NumberFormat:
    """A format by its name.

    Raises:
        UnknownName: with the valid names.

    >>> number_format("fp16").largest, number_format("bf16").epsilon
    (65504.0, 0.0078125)
    """
    for known in (*FORMATS, *OF_8_BITS):
        if known.name == name:
            return known
    raise UnknownName("number format", name, [known.name for known in (*FORMATS, *OF_8_BITS)])


def _in_bits(form: NumberFormat, value: float) -> Rounded:
    sign = "1" if math.copysign(1.0, value) < 0 else "0"
    ones = "1" * form.exponent_bits
    if math.isnan(value):
        return Rounded(form, value, math.nan, "0", ones, "1" + "0" * (form.significand_bits - 1), "not a number")
    if math.isinf(value):
        return Rounded(form, value, value, sign, ones, "0" * form.significand_bits, "exact")
    units, exponent = _rounded(form, abs(Fraction(value)))
    if not form.has_infinity and units * Fraction(2) ** (exponent - form.significand_bits) > form.largest:
        at_the_end = _in_bits(form, math.copysign(form.largest, value))
        return replace(at_the_end, given=value, fate="overflow")
    if form.has_infinity and exponent > form.bias:
        infinite = math.copysign(math.inf, value)
        return Rounded(form, value, infinite, sign, ones, "0" * form.significand_bits, "overflow")
    hidden = 1 << form.significand_bits
    field = exponent + form.bias if units >= hidden else 0
    stored = math.copysign(float(units * Fraction(2) ** (exponent - form.significand_bits)), value)
    return Rounded(
        form,
        value,
        stored,
        sign,
        format(field, f"0{form.exponent_bits}b"),
        format(units % hidden, f"0{form.significand_bits}b"),
        _fate(value, stored, field),
    )


def _rounded(form: NumberFormat, magnitude: Fraction) -> tuple[int, int]:
    """(units, exponent): the nearest multiple, even where two are as near, of 2^(exponent - significand_bits)."""
    lowest = 1 - form.bias
    exponent = lowest if magnitude == 0 else max(lowest, _floor_log2(magnitude))
    units = round(magnitude / Fraction(2) ** (exponent - form.significand_bits))  # Python rounds ties to even
    if units == 2 << form.significand_bits:  # rounded up into the next power of two
        units, exponent = units // 2, exponent + 1
    return units, exponent


def _floor_log2(magnitude: Fraction) -> int:
    guess = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return guess if magnitude >= Fraction(2) ** guess else guess - 1


def _fate(given: float, stored: float, exponent_field: int) -> Fate:
    if stored == 0 and given != 0:
        return "underflow"
    if exponent_field == 0 and stored != 0:
        return "subnormal"
    return "exact" if stored == given else "rounded"
