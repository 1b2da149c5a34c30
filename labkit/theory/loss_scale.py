"""What a gradient scaler does to its scale, update by update. Arithmetic only.

The rule of torch.amp.GradScaler: a scale under which a gradient is infinite or no number is halved and the update is
skipped; after a number of good updates in a row it is doubled.
"""

from __future__ import annotations

from collections.abc import Sequence


def scales(finite: Sequence[bool], *, first: float = 65536.0, growth_interval: int = 2000) -> list[tuple[float, bool]]:
    """(scale, whether the update was made) of each update.

    Args:
        finite: by update, whether all gradients were finite.
        first: the scale of the first update.
        growth_interval: good updates in a row after which the scale doubles.

    >>> scales([True, False, True, True, True], first=8.0, growth_interval=2)
    [(8.0, True), (8.0, False), (4.0, True), (4.0, True), (8.0, True)]
    """
    scale, good, found = first, 0, []
    for each in finite:
        found.append((scale, each))
        good = good + 1 if each else 0
        if not each:
            scale /= 2
        elif good == growth_interval:
            scale, good = 2 * scale, 0
    return found
