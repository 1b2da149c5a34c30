"""What a program may leave behind or do without bound, and what becomes of it: threads, processes, a flood of text."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from concurrent.futures import thread as pools
from pathlib import Path

from ..errors import RankFailed, RankReport
from .board import Board
from .job import output_file

MOST_OUTPUT_BYTES = 64 * 2**20
"""What a rank may print: more fills the disk, and nobody reads it."""

THREADS_GRACE_S = 10.0
"""Seconds for what a program still does on a thread when it has returned, such as a save; a busy machine takes its time."""

_LOOK_S = 0.2
_RUN_ID = "TORCHELASTIC_RUN_ID"
"""By this variable the agent names its launch to the ranks, and what they start inherits it."""


def wait_for_threads(grace_s: float) -> None:
    """Give threads that a program left running a moment. *Called on* every rank, when its program has returned.

    The process would wait for them at its end, and the launch with it until its deadline. Daemon threads end with the
    process, and idle ones of a pool are told to.

    Args:
        grace_s: that moment.

    Raises:
        RuntimeError: some run on, with their names.
    """
    patience = time.monotonic() + grace_s
    while left := _threads_that_hold():
        if time.monotonic() > patience:
            names = ", ".join(sorted(thread.name for thread in left)[:4])
            raise RuntimeError(f"the program returned and left a thread running ({names}): join it, or make it a daemon")
        time.sleep(0.01)


def _threads_that_hold() -> list[threading.Thread]:
    """Threads that the end of this process waits for."""
    of_pools = set(getattr(pools, "_threads_queues", ()))
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread() and not thread.daemon]
    return [thread for thread in others if thread not in of_pools]


def kill_started_by(run_id: str, processes: Path = Path("/proc")) -> None:
    """Kill what the ranks of a launch started in sessions of their own. *Called on* the parent, when the ranks have ended.

    The rest went with the rank's process group. Where the system shows no process's environment this does nothing.

    Args:
        run_id: of the launch.
        processes: where the system shows them, for tests.
    """
    mark = f"{_RUN_ID}={run_id}".encode()
    with contextlib.suppress(OSError):
        for entry in os.scandir(processes):
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):  # somebody else's, or gone
                if mark in Path(entry.path, "environ").read_bytes().split(b"\0"):
                    os.kill(int(entry.name), signal.SIGKILL)


class OutputWatch:
    """Ends a launch whose ranks print without bound. *Called on* the parent.

    Args:
        board: of the launch.
        folder: where its ranks write.
    """

    def __init__(self, board: Board, folder: Path, ranks: int) -> None:
        self._board, self._folder = board, folder
        self._files = [output_file(folder, rank) for rank in range(ranks)]
        self._next_look = 0.0

    def look(self, now: float) -> None:
        """Look now and then.

        Raises:
            RankFailed: a rank printed too much. Of what it printed the beginning is kept.
        """
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_S
        for rank, file in enumerate(self._files):
            if _size(file) > MOST_OUTPUT_BYTES:
                raise self._too_much(rank)

    def _too_much(self, rank: int) -> RankFailed:
        rows = self._board.rows()
        for row in rows:
            row.kill()  # before its output is cut, or it would go on
        with contextlib.suppress(OSError):
            os.truncate(self._files[rank], 2**16)
        said = f"it printed more than {MOST_OUTPUT_BYTES // 2**20} MiB in step {max(0, rows[rank].step - 1)}; print less"
        return RankFailed(
            f"rank {rank} failed; the other ranks were ended:", {rank: RankReport(rank, "failed", said)}, str(self._folder)
        )


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
