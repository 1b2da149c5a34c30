"""Bursts: of a long run not every update is looked at closely, so that watching costs little.

The first updates are, then a few in a row again and again, and those around anything that may change what a script does:
another loader, an evaluation, a load. Between bursts a step notes only what must be seen of each: who read which sample,
calls, losses, rates, collectives. What is replaced in torch for a close look is put back meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .replicas import is_looked_at

FIRST = 64
"""Updates that are looked at before there are bursts."""

BURST = 4
"""Updates of a burst that an event begins."""

TURN = 2
"""Updates of a burst whose turn it is."""

SPACINGS = ((256, 64), (1024, 128))
"""Up to which update bursts begin so many updates apart; WIDEST from then on."""

WIDEST = 256


def is_due(update: int) -> bool:
    """Whether an update, from 1 on, belongs to a burst. The same on every rank."""
    if update <= FIRST:
        return True
    spacing = _spacing(update)
    return update % spacing < TURN or is_looked_at(update) or is_looked_at(update - 1)


def next_due(done: int) -> int:
    """The first update after so many that belongs to a burst."""
    if is_due(done + 1):
        return done + 1
    spacing, power = _spacing(done + 1), 1 << done.bit_length()
    turn = (done // spacing + 1) * spacing
    return min([turn, *(at for at in (power * 3 // 4, power) if at > done)])


def _spacing(update: int) -> int:
    """How many updates lie between the begins of two bursts."""
    return next((spacing for up_to, spacing in SPACINGS if update <= up_to), WIDEST)


class Sampling:
    """Whether a burst is under way, and what is replaced only meanwhile.

    Attributes:
        in_burst: whether the script is looked at closely.
        until: the update after which a burst that an event began may end.
        begins, ends: called as a burst begins, and as it ends.
    """

    def __init__(self) -> None:
        self.in_burst = True
        self.until = 0
        self.begins: list[Callable[[], None]] = []
        self.ends: list[Callable[[], None]] = []
        self._places: list[tuple[Any, str, Any, Any]] = []
        self._hooks: list[tuple[dict[int, Any], int, Any]] = []
        self._hooks_out = False

    def only_in_bursts(self, owner: Any, name: str, between: Any) -> None:
        """Have `owner.name` be what it is now in bursts alone, and `between` between them."""
        self._places.append((owner, name, vars(owner).get(name), between))

    def hook_only_in_bursts(self, hooks: dict[int, Any], key: int) -> None:
        """Have a hook be among those of torch in bursts alone."""
        self._hooks.append((hooks, key, hooks[key]))

    def can_end(self) -> bool:
        """Whether all that was replaced is still there: where a script replaced it too, bursts do not end."""
        return all(vars(owner).get(name) is own for owner, name, own, _ in self._places)

    def end(self) -> None:
        """Look no more for a while. *Called* between updates, and not from a hook."""
        if not self.in_burst or not self.can_end():
            return
        for owner, name, _, between in self._places:
            setattr(owner, name, between)
        for hooks, key, _ in self._hooks:
            hooks.pop(key, None)
        self.in_burst = False
        for told in self.ends:
            told()

    def begin(self) -> None:
        """Look closely from now on. *Called* between updates, and not from a hook."""
        if self.in_burst:
            return
        self.in_burst = True
        for owner, name, own, between in self._places:
            if vars(owner).get(name) is between:
                setattr(owner, name, own)
        for hooks, key, hook in self._hooks:
            hooks[key] = hook
        for told in self.begins:
            told()
