"""The board: a few shared integers through which ranks and launcher see each other while a run lasts.

A memory-mapped file of int64, so that a rank updates its progress without a system call and a SIGKILLed rank leaves
what it wrote. One writer for each field: a rank writes its own row, the launcher writes `stop`.
"""

from __future__ import annotations

import contextlib
import enum
import mmap
import os
import signal
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

_FIELDS = ("pid", "started_ticks", "attempt", "state", "step", "total_steps", "together", "faults", "returned_ns", "errno")
_WORD = 8
_ROW = len(_FIELDS) * _WORD
_HEADER = _WORD  # the stop flag


class RankState(enum.IntEnum):
    """Where a rank is in its life."""

    NOT_STARTED = 0
    STARTING = 1
    RUNNING = 2
    RETURNED = 3
    FAILED = 4
    DONE = 5


@dataclass(frozen=True)
class Row:
    """One rank's row.

    `started_ticks` with `pid` names the process beyond doubt: pids are reused. `faults` counts those that fired, in all
    attempts together. `together` is 1 where `total_steps` counts the steps of all ranks, whoever makes them. `errno` says
    why a rank that failed could not leave its error behind; 0 where it could.
    """

    pid: int
    started_ticks: int
    attempt: int
    state: RankState
    step: int
    total_steps: int
    together: int
    faults: int
    returned_ns: int
    errno: int

    @property
    def is_alive(self) -> bool:
        """Whether the rank's process runs."""
        return self.pid > 0 and started_ticks(self.pid) == self.started_ticks

    @property
    def is_lost(self) -> bool:
        """Whether the rank failed, or its process is gone although it never came to its end."""
        started_and_not_done = RankState.STARTING <= self.state < RankState.DONE
        return self.state == RankState.FAILED or (started_and_not_done and not self.is_alive)

    def kill(self) -> None:
        """Kill the rank and the processes that it started, also when the rank itself is gone already.

        Each rank leads a process group. The kernel gives the group's number to no process while the group has a member;
        so a process of that number that started at another time than the rank shows that the group is empty.
        """
        if self.pid > 0 and started_ticks(self.pid) in (0, self.started_ticks):
            # no such group is left; or, on macOS, nothing but zombies is
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)


class Board:
    """Shared progress of the ranks of one launch.

    Args:
        path: the file; `create` makes it.
        world_size: number of rows.
    """

    def __init__(self, path: Path, world_size: int) -> None:
        self.world_size = world_size
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), _HEADER + world_size * _ROW)

    @classmethod
    def create(cls, path: Path, world_size: int) -> Board:
        path.write_bytes(bytes(_HEADER + world_size * _ROW))
        return cls(path, world_size)

    def row(self, rank: int) -> Row:
        values = struct.unpack_from(f"<{len(_FIELDS)}q", self._map, _HEADER + rank * _ROW)
        named = dict(zip(_FIELDS, values, strict=True))
        return Row(**{**named, "state": RankState(named["state"])})

    def rows(self) -> list[Row]:
        return [self.row(rank) for rank in range(self.world_size)]

    def put(self, rank: int, **fields: int) -> None:
        for name, value in fields.items():
            struct.pack_into("<q", self._map, _HEADER + rank * _ROW + _FIELDS.index(name) * _WORD, value)

    def set_step(self, rank: int, step: int) -> None:
        """The hot path of `put(step=...)`."""
        struct.pack_into("<q", self._map, _HEADER + rank * _ROW + 4 * _WORD, step)

    @property
    def stopped(self) -> bool:
        return self._map[0] != 0

    def stop(self) -> None:
        self._map[0] = 1

    def close(self) -> None:
        self._map.close()


def started_ticks(pid: int) -> int:
    """When a process started, in ticks that only serve to compare; 0 if it is gone.

    A zombie counts as gone: it does nothing and holds nothing.
    """
    if sys.platform == "linux":
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                state, *fields = file.read().rpartition(b")")[2].split()
        except OSError:
            return 0
        return 0 if state in (b"Z", b"X") else int(fields[18])
    import psutil

    try:
        process = psutil.Process(pid)
        return 0 if process.status() == psutil.STATUS_ZOMBIE else int(process.create_time() * 100)
    except psutil.Error:
        return 0


def own_identity() -> tuple[int, int]:
    """(pid, started_ticks) of this process."""
    return os.getpid(), started_ticks(os.getpid())
