"""Colours that colour-blind eyes tell apart (Okabe and Ito, 2008), and marks that go with them."""

from __future__ import annotations

BLUE = "#0072B2"
SKY = "#56B4E9"
GREEN = "#009E73"
YELLOW = "#F0E442"
ORANGE = "#E69F00"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#7F7F7F"
LIGHT = "#D9D9D9"

STATUS_COLOUR = {"found": VERMILION, "clear": GREEN, "inconclusive": ORANGE, "not_applicable": GREY}
STATUS_MARK = {"found": "✗", "clear": "✓", "inconclusive": "?", "not_applicable": "–"}

VARIANT_COLOUR = (VERMILION, BLUE, GREEN, PURPLE, ORANGE, SKY)
VARIANT_LINE = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))

SPAN_COLOUR = {
    "fetch": YELLOW,
    "forward": SKY,
    "backward": BLUE,
    "optimizer": GREEN,
    "all_reduce": VERMILION,
}
SPAN_HATCH = {"fetch": "", "forward": "", "backward": "", "optimizer": "..", "all_reduce": "///"}


def by_readers(num_readers: int, world_size: int) -> str:
    """Colour of a sample by how many ranks read it in the epoch: one is blue, all of them vermilion."""
    if num_readers <= 1:
        return BLUE
    if num_readers >= world_size:
        return VERMILION
    return YELLOW if num_readers == 2 else ORANGE
