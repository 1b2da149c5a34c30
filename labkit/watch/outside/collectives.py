"""Collectives that a script calls by itself: which, where from, how long, and which one each rank is in.

The last call of each rank stands in a small file that is mapped into memory, so that it can be read of a rank that hangs.
"""

from __future__ import annotations

import mmap
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...record.probe import Probe
from .patches import Patches, called_from, is_own

_now = time.monotonic_ns

OPERATIONS = (
    "all_reduce",
    "all_reduce_coalesced",
    "reduce",
    "broadcast",
    "broadcast_object_list",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_coalesced",
    "gather",
    "gather_object",
    "scatter",
    "scatter_object_list",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "monitored_barrier",
    "send",
    "recv",
)

LINE_BYTES = 512


def last_call(path: Path) -> tuple[int, str, str, bool] | None:
    """(number, operation, where from, whether it returned) of a rank's last call of a collective; None without one."""
    try:
        words = path.read_bytes().rstrip(b"\0").decode(errors="replace").split("\t")
        return (int(words[0]), words[1], words[2], words[3] == "returned") if len(words) == 4 else None
    except (OSError, ValueError):
        return None


class Collectives:
    """The collectives that the script calls. *Called on* each rank.

    Args:
        probe: this rank's.
        board: the file for the last call.
        leaving: called as the script tears its process groups down.
    """

    def __init__(self, probe: Probe, board: Path, leaving: Callable[[], None]) -> None:
        self._probe, self._leaving = probe, leaving
        self.number = 0
        with board.open("wb+") as file:
            file.truncate(LINE_BYTES)
            self._board = mmap.mmap(file.fileno(), LINE_BYTES)
        self._inside = False

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        import torch.distributed as dist

        if not dist.is_available():
            return
        for name in OPERATIONS:
            _wrap(patches, name, self._around(name))
        leaving = patches.noting(self._leaving)

        def around(original):
            def destroy_process_group(*args, **kwargs):
                leaving()
                return original(*args, **kwargs)

            return destroy_process_group

        _wrap(patches, "destroy_process_group", around)

    def _around(self, name: str) -> Any:
        watch = self

        def around(original):
            def collective(*args, **kwargs):
                # a collective that another one is made of, or that labkit makes, is not the script's
                if watch._inside or is_own(sys._getframe(1).f_code.co_filename):
                    return original(*args, **kwargs)
                where, start = called_from(), _now()
                watch._begin(name, where)
                watch._inside = True
                try:
                    given = original(*args, **kwargs)
                finally:
                    watch._inside = False
                watch._end(name, where, start, kwargs.get("async_op", False))
                return given

            return collective

        return around

    def _begin(self, name: str, where: str) -> None:
        self.number += 1
        self._write(f"{self.number}\t{name}\t{where}\tin it")

    def _end(self, name: str, where: str, start: int, in_background: bool) -> None:
        self._write(f"{self.number}\t{name}\t{where}\treturned")
        if self._probe.in_step:
            self._probe.count("script_collectives")
            if not in_background:
                self._probe.add_span("collective", "comm", start, _now())

    def _write(self, said: str) -> None:
        self._board[:] = said.encode()[:LINE_BYTES].ljust(LINE_BYTES, b"\0")


def _wrap(patches: Patches, name: str, around: Any) -> None:
    """Wrap a function under both names that it has."""
    import torch.distributed as dist
    from torch.distributed import distributed_c10d

    original = getattr(distributed_c10d, name, None)
    if original is not None:
        patches.wrap(distributed_c10d, name, around)
        if getattr(dist, name, None) is original:
            patches.put(dist, name, getattr(distributed_c10d, name))
