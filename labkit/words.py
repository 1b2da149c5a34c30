"""Numbers as sentences say them, and text that somebody else wrote as it may be shown."""

from __future__ import annotations

import math
import unicodedata

_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Kinds of characters that command a terminal, turn the direction of text, are not seen, or stand for no character."""


def plural(count: float, noun: str, several: str = "") -> str:
    """A count with its noun: "1 rank", "1,024 ranks", "0 steps". The plural takes an s unless it is given.

    >>> plural(1, "rank"), plural(1024, "rank"), plural(2, "copy", "copies")
    ('1 rank', '1,024 ranks', '2 copies')
    """
    number = f"{count:,}" if isinstance(count, int) else f"{count:g}"
    return f"{number} {noun if count == 1 else several or noun + 's'}"


def printable(text: str, *, keep: str = "", most: int | None = None) -> str:
    """Text in which nothing acts on what shows it: a control character is its symbol ("␛"), others are their code.

    Args:
        keep: characters that stay, as a line's end in text of several lines.
        most: letters after which it is cut, with an ellipsis; whole if None.

    >>> printable("a\\x1b[31mred"), printable("a long name", most=6)
    ('a␛[31mred', 'a lon…')
    """
    if not text.isprintable():
        text = "".join(each if each.isprintable() or each in keep else _symbol(each) for each in text)
    return text if most is None or len(text) <= most else text[: most - 1] + "…"


def _symbol(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"\\u{code:04x}" if unicodedata.category(character) in _UNSEEN else character


def duration(seconds: float) -> str:
    """A time in the largest unit of which it has one: "3.09 h", "40 s", "27.8 ms".

    >>> duration(11_124), duration(40), duration(0.0278)
    ('3.09 h', '40 s', '27.8 ms')
    """
    for unit, size in (("h", 3600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e3:.3g} ms"


def short(value: float) -> str:
    """A number with three digits or, from a thousand on, without a fraction: "0.0414", "5.74", "1,152".

    >>> short(0.04138), short(5.7391), short(1152.3)
    ('0.0414', '5.74', '1,152')
    """
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:,.0f}"


def about(value: float) -> str:
    """A number as a person says it: a count as it is, anything else in two digits: "32", "about 3.0", "about 75".

    >>> about(32), about(1797.0), about(2.97), about(74.6), about(0.0512), about(99.7), about(1234.5)
    ('32', '1,797', 'about 3.0', 'about 75', 'about 0.051', 'more than 99', 'about 1,200')
    """
    if value == round(value):
        return f"{value:,.0f}"
    if 99 < value < 100:
        return "more than 99"  # of a hundred: all is another answer than nearly all
    exponent = math.floor(math.log10(abs(value)))
    rounded = round(value, 1 - exponent)
    decimals = max(0, 1 - math.floor(math.log10(abs(rounded))))
    return f"about {rounded:,.{decimals}f}"
