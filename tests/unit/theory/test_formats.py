"""Number formats, against torch to the bit, and tf32 against a rounding of fp32's own bits."""

import math
import struct

import pytest
import torch

from labkit.errors import UnknownName
from labkit.theory.formats import BF16, FORMATS, FP16, FP32, OF_8_BITS, TF32, number_format

EDGES = [0.0, -0.0, 1.0, -1.0, 65504.0, 65519.996, 65520.0, 2.0**-24, 2.0**-25, 1.5 * 2.0**-25, 2.0**-14, 6.1e-5, 2049.0,
         2050.0, 257.0, 258.0, 3.4e38, 1e-45, 1.1754942e-38, math.inf, -math.inf]  # fmt: skip


def some_float32(count: int) -> list[float]:
    """Numbers of every size: random bits."""
    bits = torch.randint(-(2**31), 2**31, (count,), generator=torch.Generator().manual_seed(0), dtype=torch.int64)
    return bits.to(torch.int32).view(torch.float32).tolist() + [struct.unpack("f", struct.pack("f", v))[0] for v in EDGES]


def as_int(kept) -> int:
    return int(kept.sign + kept.exponent + kept.significand, 2)


@pytest.mark.parametrize("form", [FP32, BF16, FP16], ids=lambda form: form.name)
def test_every_bit_is_the_one_that_torch_stores(form):
    values = some_float32(2000)
    stored = torch.tensor(values, dtype=torch.float32).to(getattr(torch, form.torch_name))
    bits = stored.view({16: torch.int16, 32: torch.int32}[form.bits]).tolist()
    for value, expected, pattern in zip(values, stored.double().tolist(), bits, strict=True):
        kept = form.round(value)
        if math.isnan(expected):
            assert math.isnan(kept.value)
        else:
            assert kept.value == expected and as_int(kept) == pattern % 2**form.bits, value


@pytest.mark.parametrize("form", OF_8_BITS, ids=lambda form: form.name)
def test_every_bit_of_8_is_the_one_that_torch_stores(form):
    kept = getattr(torch, form.torch_name)
    every = torch.arange(256, dtype=torch.uint8).view(kept).float()
    middles = (every[:, None] + every[None, :8]) / 2
    values = [v for v in [*every.tolist(), *middles.flatten().tolist(), *EDGES, 463.9, 464.1, 1e6, 61439.0, 61440.0]
              if not math.isnan(v) and (form.has_infinity or math.isfinite(v))]  # fmt: skip
    stored = torch.tensor(values).to(kept)
    for value, expected, pattern in zip(values, stored.double().tolist(), stored.view(torch.uint8).tolist(), strict=True):
        found = form.round(value)
        assert found.value == expected and as_int(found) == pattern, value
    known = torch.finfo(kept)
    assert (form.largest, form.smallest_normal, form.smallest_subnormal) == (
        known.max, known.tiny, known.smallest_normal * known.eps
    )  # fmt: skip


def test_tf32_is_fp32_with_thirteen_bits_rounded_off_ties_to_even():
    for value in some_float32(2000):
        (bits,) = struct.unpack("I", struct.pack("f", value))
        if math.isfinite(value):
            rounded = (bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000
            assert TF32.round(value).value == struct.unpack("f", struct.pack("I", rounded))[0], value


def test_the_ranges_are_those_that_torch_knows():
    for form in (FP32, BF16, FP16):
        known = torch.finfo(getattr(torch, form.torch_name))
        assert (form.largest, form.smallest_normal, form.epsilon) == (known.max, known.tiny, known.eps)
    assert (FP16.largest, FP16.smallest_subnormal) == (65504.0, 2.0**-24)
    assert TF32.epsilon == FP16.epsilon and TF32.smallest_normal == FP32.smallest_normal == BF16.smallest_normal


@pytest.mark.parametrize(
    ("value", "form", "stored", "fate"),
    [
        (0.5, FP16, 0.5, "exact"),
        (0.1, BF16, 0.10009765625, "rounded"),
        (65519.0, FP16, 65504.0, "rounded"),
        (65520.0, FP16, math.inf, "overflow"),
        (-1e39, FP32, -math.inf, "overflow"),
        (2.0**-20, FP16, 2.0**-20, "subnormal"),
        (2.0**-25, FP16, 0.0, "underflow"),  # a tie, and 0 is even
        (2.0**-25 * 1.01, FP16, 2.0**-24, "subnormal"),
        (-1e-8, FP16, -0.0, "underflow"),
        (math.inf, BF16, math.inf, "exact"),
    ],
)
def test_what_becomes_of_a_number_is_named(value, form, stored, fate):
    kept = form.round(value)
    assert (kept.value, kept.fate) == (stored, fate)
    assert math.copysign(1, kept.value) == math.copysign(1, value)


def test_the_error_is_relative_and_absent_where_there_is_none():
    assert FP16.round(0.1).relative_error == pytest.approx(2.44e-4, rel=1e-3)
    assert FP16.round(1e-9).relative_error == 1.0
    assert FP16.round(0.0).relative_error == 0.0
    assert FP16.round(1e6).relative_error is None and FP16.round(math.nan).relative_error is None


def test_no_number_is_kept_in_more_bits_than_the_format_has():
    for form in FORMATS:
        kept = form.round(0.1)
        assert (len(kept.sign), len(kept.exponent), len(kept.significand)) == (1, form.exponent_bits, form.significand_bits)


def test_an_unknown_format_is_refused_with_the_nearest():
    assert number_format("tf32") is TF32
    with pytest.raises(UnknownName, match="Did you mean 'fp16'"):
        number_format("pf16")
