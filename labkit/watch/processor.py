"""How long this process had the processor, and how long it was ready to run while others had it."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import NamedTuple

_TASKS = Path("/proc/self/task")


class Took(NamedTuple):
    """What a piece of work took of the processor, all threads of the process together.

    Attributes:
        cpu_s: seconds on a core.
        queued_s: seconds in which a thread could have run and waited for a core; None where the system does not tell.
    """

    cpu_s: float
    queued_s: float | None


class ProcessorTime:
    """Lap by lap, what the process takes of the processor. The wait for a core is told on Linux alone."""

    def __init__(self) -> None:
        self._cpu, self._queued = time.process_time(), _queued_s()

    def lap(self) -> Took:
        """What was taken since the last lap, or since it was made. Takes a tenth of a millisecond."""
        before, queued_before = self._cpu, self._queued
        self._cpu, self._queued = time.process_time(), _queued_s()
        if self._queued is None or queued_before is None:
            return Took(self._cpu - before, None)
        # a thread that ended takes its account along
        return Took(self._cpu - before, max(0.0, self._queued - queued_before))


def _queued_s() -> float | None:
    """Seconds that the threads of the process waited for a core so far; None where the kernel keeps no such account."""
    try:
        tasks = list(_TASKS.iterdir())
    except OSError:
        return None
    told = []
    for task in tasks:
        with contextlib.suppress(OSError, ValueError, IndexError):  # a thread may end meanwhile
            told.append(int((task / "schedstat").read_text().split()[1]))
    return sum(told) / 1e9 if told else None
