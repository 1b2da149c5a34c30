"""How a kind of span looks: a colour and a pattern, so that none needs its colour to be told from another."""

from __future__ import annotations

from collections.abc import Sequence

from .. import palette

PATTERNS = ("solid", "slash", "dots", "bars", "cross", "backslash")
SAID = {"all_reduce": "all-reduce", "fetch": "fetch a batch", "push": "push gradients", "pull": "pull weights"}
_KNOWN = {
    "fetch": (palette.YELLOW, "solid"),
    "forward": (palette.SKY, "solid"),
    "backward": (palette.BLUE, "backslash"),
    "optimizer": (palette.GREEN, "dots"),
    "all_reduce": (palette.VERMILION, "slash"),
    "wait": (palette.LIGHT, "dots"),
    "device": (palette.PURPLE, "bars"),
    "push": (palette.VERMILION, "slash"),
    "pull": (palette.ORANGE, "cross"),
    "save": (palette.ORANGE, "cross"),
    "others": (palette.GREY, "solid"),
}
_COLOURS = (palette.PURPLE, palette.ORANGE, palette.GREEN, palette.SKY, palette.VERMILION, palette.BLUE)


def kinds(names: Sequence[str]) -> list[list[str]]:
    """[what is said, colour, pattern] of each name, the same for a name each time at its place."""
    found = []
    for place, name in enumerate(names):
        other = (_COLOURS[place % len(_COLOURS)], PATTERNS[1 + place % (len(PATTERNS) - 1)])
        found.append([SAID.get(name, name), *_KNOWN.get(name, other)])
    return found
