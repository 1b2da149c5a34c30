"""Keep ranks from filling the machine's memory.

Past that point the system kills what it likes (a notebook's kernel, another learner's run) or everything stands still in
swap. So the launcher looks while the ranks run, and ends them while something is left.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import psutil

from ..errors import OutOfMemory, RankReport
from .board import Board, Row

RESERVE_SHARE = 0.02
RESERVE_LEAST_BYTES = 256 * 2**20
_FASTEST_BYTES_PER_S = 10e9
"""At most what ranks take together: fresh memory is zeroed by the kernel and written, a few GB/s for each core."""

_LOOK_S = (0.05, 1.0)
"""The shortest and the longest time between two looks. A look costs up to half a millisecond, which timed runs should not
pay more often than needed."""

_SYSTEM = Path("/")
_GB = 1e9

# Memory controller of Linux, versions 2 and 1: where it is mounted, limit, usage, and how memory.stat names the share of
# the page cache that is given back first (Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst).
_CONTROLLERS = (
    ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def total_and_left(root: Path = _SYSTEM) -> tuple[int, int]:
    """Bytes of memory that this process and its children may have in all, and those that they can still take.

    Those of the machine, or of a control group that this process is in, where that leaves less: a container, a slice of
    a session, a single user's server of JupyterHub.

    Args:
        root: the root of the file system, for tests.
    """
    machine = psutil.virtual_memory()
    return min([(machine.total, machine.available), *_limits(root)], key=lambda pair: pair[1])


def _limits(root: Path) -> list[tuple[int, int]]:
    found = []
    for mount, limit, usage, cache in _CONTROLLERS:
        for folder in _own_groups(root, mount):
            with contextlib.suppress(OSError, ValueError):  # no such controller, or "max": no limit
                most = int((folder / limit).read_text())
                stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                used = int((folder / usage).read_text()) - int(stat.get(cache, 0))
                found.append((most, max(0, most - used)))
    return found


def _own_groups(root: Path, mount: str) -> list[Path]:
    """The group that this process is in and those around it. A container sees its own as the top."""
    top = root / mount
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    own = [path for _, controllers, path in (line.split(":", 2) for line in lines) if controllers in ("", "memory")]
    groups = {top: None}
    for path in own:
        folder = top / path.strip("/")
        groups |= {group: None for group in (folder, *folder.parents) if group.is_relative_to(top)}
    return list(groups)


class MemoryWatch:
    """Watches over the memory of one launch. *Called on* the parent.

    Args:
        board: of the launch.
        folder: of the launch, for the error.
    """

    def __init__(self, board: Board, folder: Path) -> None:
        self._board, self._folder = board, folder
        total, self._left_before = total_and_left()
        # where little was left to begin with, half of it is the ranks' to take
        self._reserve = min(max(RESERVE_LEAST_BYTES, int(RESERVE_SHARE * total)), self._left_before // 2)
        self._next_look = 0.0

    def look(self, now: float) -> None:
        """Look now and then.

        Raises:
            OutOfMemory: next to nothing is left, and it was these ranks that took most of what is gone since the launch.
        """
        if now < self._next_look:
            return
        total, left = total_and_left()
        at_the_earliest_full_s = (left - self._reserve) / _FASTEST_BYTES_PER_S
        self._next_look = now + min(max(at_the_earliest_full_s / 2, _LOOK_S[0]), _LOOK_S[1])
        if left >= self._reserve:
            return
        rows = self._board.rows()
        held = [_held(row) for row in rows]
        if sum(held) < (self._left_before - left) / 2:  # others took it
            return
        reports = {
            rank: RankReport(rank, "ended", f"held {bytes_held / _GB:.1f} GB, in step {max(0, rows[rank].step - 1)}")
            for rank, bytes_held in enumerate(held)
        }
        raise OutOfMemory(
            f"the ranks were ended before they filled the memory: {left / _GB:.1f} of {total / _GB:.1f} GB were left, and "
            f"they held {sum(held) / _GB:.1f} GB; give smaller sizes or fewer ranks:",
            reports,
            str(self._folder),
        )


def _held(row: Row) -> int:
    """Resident bytes of a rank and the processes that it started; 0 where it is gone."""
    if not row.is_alive:
        return 0
    found = 0
    with contextlib.suppress(psutil.Error):
        rank = psutil.Process(row.pid)
        for process in (rank, *rank.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                found += process.memory_info().rss
    return found
