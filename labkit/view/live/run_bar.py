"""A bar under the cell that runs a lab, for whoever looks at the page. It leaves nothing in the cell's outputs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from ...record.follow import Follower
from ...record.roles import Role, label_of
from ...words import short
from .. import dark
from .parts import part
from .place import somebody_looks

if TYPE_CHECKING:
    from ...ranks.progress import Progress

OnProgress = Callable[[str, "Progress"], None]
EVERY_S = 0.25


@contextlib.contextmanager
def run_shown(what: str) -> Iterator[OnProgress | None]:
    """Show a run's progress while the context lasts; gives the callback, None where nobody looks.

    Args:
        what: what runs, in words.
    """
    if not somebody_looks():
        yield None
        return
    shown = _Shown(what)
    try:
        yield shown.progress
    finally:
        shown.end()


class _Shown:
    """What the bar says, told a few times a second."""

    def __init__(self, what: str) -> None:
        self._what, self._bar = what, _bar()
        self._told_s = 0.0
        self._follower: Follower | None = None
        self._loss: dict[int, float] = {}
        self._bar.said = f"{what}: starting …"

    def progress(self, role: str, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._told_s < EVERY_S:
            return
        self._told_s = now
        if progress.folder is not None and (self._follower is None or self._follower.folder != progress.folder):
            self._close()
            self._follower, self._loss = Follower(progress.folder, len(progress.steps)), {}
        if self._follower is not None:
            look = self._follower.look(progress.attempt, progress.lost)
            self._loss |= {int(rank): loss for rank, _, loss in look.losses}
        self._bar.fraction = progress.fraction_of_all
        self._bar.said = f"{self._what}{_role(role, progress)}: {said_progress(progress, self._loss)}"

    def end(self) -> None:
        self._close()
        self._bar.over = True
        self._bar.close()

    def _close(self) -> None:
        if self._follower is not None:
            self._follower.close()


def _role(role: str, progress: Progress) -> str:
    return "" if role == Role.VARIANT else f", {label_of(role, len(progress.steps))}"


def said_progress(progress: Progress, loss_by_rank: dict[int, float] | None = None) -> str:
    """How far a run is: "step 14 of 60, 3 s so far, about 9 s left, loss 0.41", and of which launch."""
    so_far = f"{progress.before_s + progress.elapsed_s:.0f} s so far"
    which = f" of launch {progress.launch} of {progress.launches}" if progress.launch < progress.launches else ""
    if not progress.running:
        return f"starting …, {so_far}"
    parts = [progress.said, so_far]
    if progress.left_s is not None:
        left = f"about {progress.left_s:.0f} s left" if progress.left_s >= 0.5 else "almost at the end"
        parts.append(left + which)
    if loss_by_rank:
        mean = float(np.mean(list(loss_by_rank.values())))
        parts.append(f"loss {short(mean)}" if np.isfinite(mean) else "the loss is not a number")
    return ", ".join(parts)


def _bar():
    import anywidget
    import traitlets

    class RunBar(anywidget.AnyWidget):
        _esm = part("run_bar.js")
        fraction = traitlets.Float(0.0).tag(sync=True)
        said = traitlets.Unicode("").tag(sync=True)
        over = traitlets.Bool(False).tag(sync=True)
        rule = traitlets.Unicode(dark.RULE).tag(sync=True)

    return RunBar()
