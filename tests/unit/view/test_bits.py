"""The bits of a number, still and to be dragged, without a browser."""

import math

import pytest

from labkit.errors import UsageError
from labkit.view.bits import Bits, BitsPanel, number

from .test_cards import text_of


def row(bits, name: str) -> str:
    (line,) = [line for line in repr(bits).splitlines() if line.startswith(name)]
    return line


def test_each_format_shows_its_bits_its_value_its_error_and_what_became_of_it():
    bits = Bits(65520)
    assert "11111 0000000000" in row(bits, "fp16") and "inf" in row(bits, "fp16") and "becomes infinite" in row(bits, "fp16")
    assert (
        "10001111 0000000" in row(bits, "bf16") and "65536.0" in row(bits, "bf16") and "error 2.4e-04" in row(bits, "bf16")
    )
    assert "65520.0" in row(bits, "fp32") and "kept exactly" in row(bits, "fp32")
    assert "0 00000 0000000000" in row(Bits(1e-8), "fp16").replace("    ", " ") and "becomes 0" in row(Bits(1e-8), "fp16")


def test_as_html_every_part_has_a_letter_and_a_mark_beside_its_colour():
    text = text_of(Bits(3e-6)._repr_html_())
    for part in (
        "s = sign",
        "e = exponent",
        "f = significand",
        "≈ rounded",
        "↓ fewer digits",
        "fp32",
        "tf32",
        "bf16",
        "fp16",
    ):
        assert part in text
    assert text.count("·") >= 13 + 16 + 13 + 3  # bits that a format has not, of significand and exponent


def test_dragging_changes_the_picture_and_the_entry():
    panel = BitsPanel(0.1)
    before = panel._shown.value
    panel._slider.value = 1e-8
    assert panel._shown.value != before and "becomes 0" in panel._shown.value
    assert panel.bits.value == 1e-8 and panel._entry.value == "1e-08"
    panel._negative.value = True
    assert panel.bits.value == -1e-8


def test_typing_changes_the_picture_and_the_slider():
    panel = BitsPanel(0.1)
    panel._entry.value = "-2**-24"
    assert panel.bits.value == -(2.0**-24) and panel._negative.value
    assert panel._slider.value == pytest.approx(2.0**-24)
    panel._entry.value = "inf"
    assert panel.bits.value == math.inf and panel._slider.value == pytest.approx(2.0**-24)


def test_what_is_no_number_is_refused_beside_the_entry_and_the_picture_stays():
    panel = BitsPanel(0.1)
    panel._entry.value = "<b>"
    assert "give a number such as 0.1" in panel._note.value and "<b>" not in panel._note.value
    assert panel.bits.value == 0.1
    panel._entry.value = "2"
    assert panel._note.value == "" and panel.bits.value == 2.0


@pytest.mark.parametrize(("text", "value"), [("0.1", 0.1), ("2**-24", 2.0**-24), ("2^10", 1024.0), (" 65504 ", 65504.0)])
def test_numbers_and_powers_are_read(text, value):
    assert number(text) == value


@pytest.mark.parametrize(
    "text", ["", "one", "2**", "2**x", "10**999", "0**-1", "(-1)**0.5", "-1**0.5**2", "__import__('os')"]
)
def test_nothing_else_is_read_nor_run(text):
    with pytest.raises(UsageError, match="give a number"):
        number(text)


def test_only_one_number_is_taken():
    for wrong in ("0.1", [0.1], True, None):
        with pytest.raises(UsageError, match="give one number"):
            Bits(wrong)


def test_a_stored_notebook_keeps_the_picture_as_html_and_as_text():
    bundle = BitsPanel(0.1)._repr_mimebundle_()
    assert "bit by bit" in bundle["text/html"] and bundle["text/plain"].startswith("0.1, bit by bit")
    assert "application/vnd.jupyter.widget-view+json" in bundle
