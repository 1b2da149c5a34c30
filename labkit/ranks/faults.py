"""Faults as an API: delay, raise, kill or hang at (rank, step), counted, so that a test can assert that the fault fired.

A fault may also wait for a point that the program names, such as the middle of a save.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..arguments import check_fields
from ..errors import UsageError

KINDS = ("delay", "exception", "kill", "lose-node", "hang")
STEP = "step"
"""The point that every program reaches: the beginning of a step."""

MAX_DELAY_S = 86400.0


class InjectedFault(RuntimeError):
    """What an injected `exception` raises."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One planned fault.

    Attributes:
        kind: "delay" sleeps `seconds` at the beginning of the step, "exception" raises InjectedFault, "kill" sends
            SIGKILL to the rank's own process, "lose-node" removes the disk of the rank's node first, "hang" leaves the
            process alive and does nothing any more.
        rank: which rank.
        step: at the beginning of which step (0 is the first).
        at: another point of the program, by the name that it gives to `context.reached`; then the fault happens the
            first time that the rank comes there, in that step or later.
        seconds: for "delay" only.
        attempt: in which attempt of a restarted run (0 is the first); None means each.
    """

    kind: Literal["delay", "exception", "kill", "lose-node", "hang"]
    rank: int
    step: int
    at: str = STEP
    seconds: float = 0.0
    attempt: int | None = 0

    def __post_init__(self) -> None:
        if not isinstance(self.seconds, (int, float)) or not isinstance(self.attempt, (int, type(None))):
            check_fields(self)
        if self.kind not in KINDS:
            raise UsageError(f"fault kind {self.kind!r}; there are: {', '.join(KINDS)}")
        for value in (self.rank, self.step):
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise UsageError(f"a fault's rank and step count from 0; given rank={self.rank!r}, step={self.step!r}")
        if not isinstance(self.at, str) or not self.at:
            raise UsageError(f"a fault's point is a name that the program gives, or {STEP!r}; given {self.at!r}")
        if self.kind == "delay" and not 0 < self.seconds <= MAX_DELAY_S:
            raise UsageError(f"a delay needs seconds > 0; given {self.seconds}, at most {MAX_DELAY_S:g}")


class FaultInjector:
    """Fires a rank's faults. *Called on* every rank, at the beginning of each step and at each point.

    Args:
        faults: all planned faults; those of other ranks or attempts are ignored.
        announce: called with the fault just before it happens, so that a kill is recorded too.
        local_disk: the folder that a lost node takes along.
    """

    def __init__(
        self,
        faults: tuple[Fault, ...],
        rank: int,
        attempt: int,
        announce: Callable[[Fault], None],
        local_disk: Path | None = None,
    ) -> None:
        planned = [f for f in faults if f.rank == rank and f.attempt in (None, attempt)]
        self._at_steps = [f for f in planned if f.at == STEP]
        self._at_points = [f for f in planned if f.at != STEP]
        self._announce, self._local_disk = announce, local_disk

    def __call__(self, step: int) -> None:
        for fault in self._at_steps:
            if fault.step == step:
                self._fire(fault)

    def reached(self, point: str, step: int) -> None:
        """The program came to a point of its own in a step; what comes before the first (-1) counts as in step 0."""
        for fault in [f for f in self._at_points if f.at == point and max(0, step) >= f.step]:
            self._at_points.remove(fault)
            self._fire(fault)

    def _fire(self, fault: Fault) -> None:
        self._announce(fault)
        _happen(fault, self._local_disk)


def _happen(fault: Fault, local_disk: Path | None) -> None:
    match fault.kind:
        case "delay":
            time.sleep(fault.seconds)
        case "exception":
            raise InjectedFault(f"injected at rank {fault.rank}, step {fault.step}")
        case "lose-node":
            if local_disk is not None:
                shutil.rmtree(local_disk, ignore_errors=True)
            os.kill(os.getpid(), signal.SIGKILL)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            while True:
                time.sleep(MAX_DELAY_S)
