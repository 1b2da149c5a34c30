"""Faults as an API: delay, raise or kill at (rank, step), counted, so that a test can assert that the fault fired."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ..errors import UsageError

KINDS = ("delay", "exception", "kill")
MAX_DELAY_S = 86400.0


class InjectedFault(RuntimeError):
    """What an injected `exception` raises."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One planned fault.

    Attributes:
        kind: "delay" sleeps `seconds` at the beginning of the step, "exception" raises InjectedFault, "kill" sends
            SIGKILL to the rank's own process.
        rank: which rank.
        step: at the beginning of which step (0 is the first).
        seconds: for "delay" only.
        attempt: in which attempt of a restarted run (0 is the first); None means each.
    """

    kind: Literal["delay", "exception", "kill"]
    rank: int
    step: int
    seconds: float = 0.0
    attempt: int | None = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(f"fault kind {self.kind!r}; there are: {', '.join(KINDS)}")
        for value in (self.rank, self.step):
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise UsageError(f"a fault's rank and step count from 0; given rank={self.rank!r}, step={self.step!r}")
        if self.kind == "delay" and not 0 < self.seconds <= MAX_DELAY_S:
            raise UsageError(f"a delay needs seconds > 0; given {self.seconds}, at most {MAX_DELAY_S:g}")


class FaultInjector:
    """Fires a rank's faults. *Called on* every rank, at the beginning of each step.

    Args:
        faults: all planned faults; those of other ranks or attempts are ignored.
        announce: called with the fault just before it happens, so that a kill is recorded too.
    """

    def __init__(self, faults: tuple[Fault, ...], rank: int, attempt: int, announce: Callable[[Fault], None]) -> None:
        self._planned = [f for f in faults if f.rank == rank and f.attempt in (None, attempt)]
        self._announce = announce

    def __call__(self, step: int) -> None:
        for fault in self._planned:
            if fault.step == step:
                self._announce(fault)
                _happen(fault)


def _happen(fault: Fault) -> None:
    match fault.kind:
        case "delay":
            time.sleep(fault.seconds)
        case "exception":
            raise InjectedFault(f"injected at rank {fault.rank}, step {fault.step}")
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
