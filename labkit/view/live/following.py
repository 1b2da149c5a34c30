"""A thread that looks at a running launch's files and tells the page; the kernel and the ranks go on meanwhile."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from ...record.follow import Follower
from ...record.roles import label_of

if TYPE_CHECKING:
    from ...ranks.progress import Progress
    from .widget import LiveView

LOOK_S = 0.08
"""Between two looks: more than ten a second."""
TICK_S = 0.5
"""After so long without anything new the page is told what time it is."""


class Following:
    """Follows the launches of one run, one after the other.

    Args:
        view: what is told.
        prefix: what runs, in words: the beginning of each title.
    """

    def __init__(self, view: LiveView, prefix: str) -> None:
        self._view, self._prefix = view, prefix
        self._latest: tuple[str, Progress] | None = None
        self._over = threading.Event()
        self._follower: Follower | None = None
        self._told_s = 0.0
        self._thread = threading.Thread(target=self._work, daemon=True, name="labkit-follow")
        self._thread.start()

    def progress(self, role: str, progress: Progress) -> None:
        """Where the launch is; called often, from the thread that runs it."""
        self._latest = (role, progress)

    def end(self) -> None:
        """Look once more and stop."""
        self._over.set()
        self._thread.join(5)

    def _work(self) -> None:
        try:
            while not self._over.wait(LOOK_S):
                self._look()
            self._look()
        finally:
            if self._follower is not None:
                self._follower.close()

    def _look(self) -> None:
        if self._latest is None:
            return
        role, progress = self._latest
        if progress.folder is None:
            return
        if self._follower is None or self._follower.folder != progress.folder:
            if self._follower is not None:
                self._follower.close()
            ranks = len(progress.steps)
            self._follower = Follower(progress.folder, ranks)
            self._view.begin(ranks, f"{self._prefix}: {label_of(role, ranks)}")
        look = self._follower.look(progress.attempt, progress.lost)
        now = time.monotonic()
        if look.is_empty and now - self._told_s < TICK_S:
            return
        self._told_s = now
        self._view.show(look, self._follower.ms(time.monotonic_ns()))
