"""Ranks of an outer launcher, as torchrun: they write into one folder, and rank 0 reads it once the others have ended.

A launcher ends all ranks as soon as one fails. It asks first: the ranks then end in order, so that rank 0 still reports.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import xxhash

from ..ranks.join import Place
from ..record.store import runs_folder
from .launch import Ended, RankEnd
from .rank import end_of

OTHERS_S = 30.0
"""How long rank 0 waits for the ends of the others' scripts."""

TOLD_S = 5.0
"""The same where the launcher ends all ranks: it kills those that are left after half a minute."""

TERMINATED = 128 + signal.SIGTERM


@dataclass
class Told:
    """Whether the launcher has told this rank to end."""

    to_end: bool = False
    _runs: bool = True

    def over(self) -> None:
        """The script is over: from now on nothing is raised in this rank."""
        self._runs = False

    def hear(self, *_: object) -> None:
        """End the script, if it runs."""
        self.to_end = True
        if self._runs:
            self._runs = False
            raise SystemExit(TERMINATED)


@contextlib.contextmanager
def in_order(restored: bool = True) -> Iterator[Told]:
    """End in order when the launcher says so, and not at once. A handler of the script's own takes precedence.

    Args:
        restored: whether the process goes on after, and is to be ended as any other; else it only reports still.
    """
    told = Told()
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield told
        return
    signal.signal(signal.SIGTERM, told.hear)
    try:
        yield told
    finally:
        told.over()
        if restored:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def elsewhere(folder: Path, place: Place) -> tuple[int, ...]:
    """Ranks of other machines that wrote nothing into this folder: theirs has the same name, on a disk of their own.

    *Called on* rank 0, after its own script: each rank has made its file by then.
    """
    others = range(place.local_world_size, place.world_size)
    return tuple(rank for rank in others if not (folder / f"rank-{rank:05d}.jsonl").exists())


def ended(folder: Path, world_size: int, begin: float, told: Told, unseen: tuple[int, ...] = ()) -> Ended:
    """How the ranks ended, once they have or have had the time to. *Called on* rank 0, after its own script.

    Args:
        begin: when they began, by the monotonic clock.
        unseen: ranks whose ends this machine will not hear of.
    """
    told.over()
    start = time.monotonic()
    seen = [rank for rank in range(world_size) if rank not in unseen]
    while any(end_of(folder, rank) is None for rank in seen):
        if time.monotonic() - start > (TOLD_S if told.to_end else OTHERS_S):
            break
        time.sleep(0.05)
    left = ("ended with the others", TERMINATED) if told.to_end else ("still", 1)
    ends = {rank: end_of(folder, rank) or left for rank in seen}
    return Ended([RankEnd(rank, *end) for rank, end in ends.items()], time.monotonic() - begin, unseen=unseen)


def folder_of_launch(name: str) -> Path:
    """The folder that all ranks of one launch find by themselves, and those of another launch do not."""
    known = [os.environ.get(word, "") for word in ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID")]
    of_launch = f"{xxhash.xxh3_64_hexdigest('|'.join(known).encode())}-{os.getppid()}"
    return runs_folder() / f"doctor-{name}-{of_launch}"
