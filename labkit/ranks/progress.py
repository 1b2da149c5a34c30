"""How far the ranks of a launch are, and how long they will take at the pace that they were seen to go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .board import RankState, Row

LEAST_SHARE, LEAST_S = 0.03, 1.0
"""So much of the steps, and so many seconds, must have been watched before a pace is told."""


@dataclass(frozen=True)
class Progress:
    """How far the ranks are.

    Attributes:
        steps: steps begun, by rank.
        total_steps: what a rank will do, as the one that counts most said; 0 while unknown.
        together: whether these are the steps of all ranks together: each takes of them as many as it can.
        running: ranks that have joined.
        elapsed_s: since the launch.
        attempt: 0, and one more for each restart.
        folder: where the ranks write; None where nobody says.
        lost: ranks of this attempt that failed or whose processes are gone, as they were seen last.
        left_s: until all steps of this launch are begun, at the pace of this attempt; None while too little was seen.
        launch, launches: which launch of how many this is; a record may need references beside the run under study.
        before_s: what the launches before this one took.
    """

    steps: tuple[int, ...]
    total_steps: int
    running: int
    elapsed_s: float
    together: bool = False
    attempt: int = 0
    folder: Path | None = None
    lost: tuple[int, ...] = ()
    left_s: float | None = None
    launch: int = 1
    launches: int = 1
    before_s: float = 0.0

    @property
    def fraction(self) -> float:
        """Share of all ranks' steps begun in this launch, 0 to 1."""
        planned = self.total_steps * (1 if self.together else len(self.steps))
        return sum(self.steps) / planned if planned else 0.0

    @property
    def fraction_of_all(self) -> float:
        """Share of all launches, each counted alike, 0 to 1: it never falls as one launch follows the other."""
        return (self.launch - 1 + self.fraction) / self.launches

    @property
    def said(self) -> str:
        """How far it is, as words: "step 14 of 60", with the attempt after a restart."""
        begun = sum(self.steps) if self.together else max(self.steps)
        step = f"step {begun} of {self.total_steps or '?'}"
        return step + (" of all ranks" if self.together else "") + (f", attempt {self.attempt + 1}" if self.attempt else "")


class Pace:
    """Watches one launch. Processes that come up are no part of the pace, nor are the attempts before the present one."""

    def __init__(self) -> None:
        self._attempt = -1
        self._since = (0.0, 0.0)  # (seconds, share) as the first step of the attempt was seen

    def left_s(self, attempt: int, fraction: float, elapsed_s: float) -> float | None:
        """Seconds until the share is 1; None while too little was seen."""
        if attempt != self._attempt:
            if fraction <= 0:
                return None
            self._attempt, self._since = attempt, (elapsed_s, fraction)
        watched_s, done = elapsed_s - self._since[0], fraction - self._since[1]
        if watched_s < LEAST_S or done < LEAST_SHARE or fraction > 1:
            return None
        return watched_s * (1 - fraction) / done


class Watch:
    """From what is on the board to Progress, again and again while a launch lasts.

    Args:
        folder: where its ranks write.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._pace = folder, Pace()

    def progress(self, rows: Sequence[Row], elapsed_s: float, lost: tuple[int, ...]) -> Progress:
        """Where the ranks are now."""
        seen = Progress(
            steps=tuple(row.step for row in rows),
            total_steps=max(row.total_steps for row in rows),
            running=sum(row.state >= RankState.RUNNING for row in rows),
            elapsed_s=elapsed_s,
            together=any(row.together for row in rows),
            attempt=max(row.attempt for row in rows),
            folder=self._folder,
            lost=lost,
        )
        left_s = self._pace.left_s(seen.attempt, seen.fraction, elapsed_s)
        return seen if left_s is None else replace(seen, left_s=left_s)
