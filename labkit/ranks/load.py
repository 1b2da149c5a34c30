"""Look at what other programs do on the cores of this machine, before a launch and while its ranks run.

What cores did is the system's own count, less the time of this process, of its children and of theirs: what ranks that have
ended used is found with the process that waited for them. *Called on* the parent.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass

import psutil

from ..record.load import Load
from .backend import usable_cores

FRESH_S = 20.0
"""A look that is not older than this shows how busy the machine is before a launch; else there is a new one."""

SHORTEST_S = 0.05
"""The system counts in hundredths of a second: over less than this nothing can be seen."""

_IDLE = ("idle", "iowait", "guest", "guest_nice")  # a guest's time is in the user's already


@dataclass(frozen=True)
class Look:
    """Seconds of processor time, counted from some moment on.

    Attributes:
        at: when, by the monotonic clock.
        busy_s: of the cores that this process may use, by whomever.
        own_s: of this process and of all that it started.
    """

    at: float
    busy_s: float
    own_s: float


def look() -> Look | None:
    """Look once, at the cost of some milliseconds; None where the system does not let one look."""
    try:
        cores = psutil.cpu_times(percpu=True)
        mine = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(len(cores))
        busy = sum(_busy_s(cores[core]) for core in mine if core < len(cores))
        return Look(time.monotonic(), busy, _own_s())
    except (psutil.Error, OSError, NotImplementedError):
        return None


def _busy_s(core: object) -> float:
    return sum(value for name, value in core._asdict().items() if name not in _IDLE)  # type: ignore[attr-defined]


def _own_s() -> float:
    this = psutil.Process()
    total = 0.0
    for process in (this, *this.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()._asdict()
            total += sum(times.get(name, 0.0) for name in ("user", "system", "children_user", "children_system"))
    return total


class LoadWatch:
    """Watches over the load of one launch, from just before it to its end."""

    _last: Look | None = None  # of the launch before: what came since shows the machine without ranks

    def __init__(self) -> None:
        earlier, now = LoadWatch._last, look()
        if earlier is None or now is None or not SHORTEST_S <= now.at - earlier.at <= FRESH_S:
            earlier = now
            if now is not None:
                time.sleep(SHORTEST_S)
                now = look()
        self._before = _others(earlier, now)
        self._start = now

    def ended(self, wanted: int) -> Load | None:
        """The load of a launch of ranks that wanted so many cores; None where it could not be seen, or hardly ran."""
        end = LoadWatch._last = look()
        if self._start is None or end is None or end.at - self._start.at < SHORTEST_S:
            return None
        seconds = end.at - self._start.at
        return Load(
            cores=usable_cores(),
            wanted=wanted,
            before=round(self._before, 3),
            during=round(_others(self._start, end), 3),
            own=round(max(0.0, end.own_s - self._start.own_s) / seconds, 3),
            seconds=round(seconds, 3),
        )


def _others(start: Look | None, end: Look | None) -> float:
    """Cores that others used between two looks, the mean."""
    if start is None or end is None or end.at <= start.at:
        return 0.0
    used = (end.busy_s - start.busy_s) - (end.own_s - start.own_s)
    return min(max(0.0, used / (end.at - start.at)), float(usable_cores()))
