"""Reading a file from storage, in order and at random, with the page cache kept out, or said not to be."""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...ranks.context import RankContext
from . import Config

SHARE = 0.25
"""Of the budget."""

BLOCK, PAGE = 2**20, 4096
"""Bytes of a read in order, and of one at random."""

ROW_BYTES = 16 * BLOCK
RANDOM_READS = 64
REPEATS = (3, 12)
IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")


@dataclass
class Opened:
    """A file open for reading.

    Attributes:
        descriptor: of the file.
        bypass: how the page cache is kept out, in words.
        drops: whether the cached pages have to be dropped before each repeat.
    """

    descriptor: int
    bypass: str
    drops: bool = False

    def forget(self) -> None:
        """Ask the kernel to drop what it keeps of the file."""
        if self.drops:
            os.posix_fadvise(self.descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def cached_share(self, num_bytes: int) -> float:
        """Share of a few places of the file that could be read without waiting for storage; -1 where none can tell.

        Reading what is found brings in more, so the pages are dropped again afterwards.
        """
        if not hasattr(os, "RWF_NOWAIT"):
            return -1.0
        buffer, found = mmap.mmap(-1, PAGE), 0
        places = [int(i / 16 * num_bytes) // PAGE * PAGE for i in range(16)]
        for place in places:
            try:
                found += os.preadv(self.descriptor, [buffer], place, os.RWF_NOWAIT) > 0
            except BlockingIOError:
                continue
            except OSError:
                return -1.0
        self.forget()
        return found / len(places)


def measure_storage(context: RankContext) -> None:
    """Write a file where records are kept, read it in order and at random, remove it. *Called on* one rank."""
    config: Config = context.task
    path, num_bytes = context.folder / "storage.bin", max(1, config.storage_mib) * BLOCK
    budget_s = config.budget_s * SHARE / 2
    try:
        _write(path, num_bytes, context.seed)
        with _opened(path) as file:
            file_system = file_system_of(path)
            file.forget()
            cached = file.cached_share(num_bytes) if file.drops else -1.0
            context.probe.declare(
                file_bytes=num_bytes,
                file_system=file_system,
                in_memory=file_system in IN_MEMORY,
                cache_bypass=file.bypass,
                cached_share=cached,
            )
            context.expect_steps(2 * REPEATS[1])
            row = min(ROW_BYTES, num_bytes)
            starts = [place % (num_bytes - row + 1) // BLOCK * BLOCK for place in range(0, REPEATS[1] * row, row)]
            _repeats(context, file, "read-sequential", [range(s, s + row, BLOCK) for s in starts], BLOCK, budget_s)
            draw = random.Random(context.seed)
            places = [[draw.randrange(num_bytes // PAGE) * PAGE for _ in range(RANDOM_READS)] for _ in range(REPEATS[1])]
            _repeats(context, file, "read-random", places, PAGE, budget_s)
    finally:
        path.unlink(missing_ok=True)


def _repeats(context: RankContext, file: Opened, name: str, rows: list, length: int, budget_s: float) -> None:
    """Time rows of reads until the budget is spent, three at least. In order a row counts as one, at random a read does."""
    buffer, spent, probe = mmap.mmap(-1, length), 0.0, context.probe  # a map is aligned, as O_DIRECT demands
    if name == "read-random" and hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file.descriptor, 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead
    for number, places in enumerate(rows):
        if number >= REPEATS[0] and spent > budget_s:
            break
        file.forget()
        probe.begin_step()
        start = time.perf_counter()
        with probe.span(name, "data"):
            for place in places:
                os.preadv(file.descriptor, [buffer], place)
        seconds = time.perf_counter() - start
        spent += seconds
        per = 1 if name == "read-sequential" else len(places)
        probe.scalar("seconds", seconds / per)
        probe.count("bytes", length * len(places) // per)
        probe.count("operations", per)
        probe.end_step()


def _write(path: Path, num_bytes: int, seed: int) -> None:
    """Fill a file with bytes that do not compress, and see it on storage."""
    block = random.Random(seed).randbytes(BLOCK)
    with open(path, "wb") as file:
        for _ in range(num_bytes // BLOCK):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Opened]:
    file = open_past_the_cache(path)
    try:
        yield file
    finally:
        os.close(file.descriptor)


def open_past_the_cache(path: Path) -> Opened:
    """Open a file so that reads come from storage: by O_DIRECT, else by dropping its pages, else not at all, and said so."""
    if hasattr(os, "O_DIRECT"):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
            try:
                os.preadv(descriptor, [mmap.mmap(-1, PAGE)], 0)
                return Opened(descriptor, "bypassed (O_DIRECT)")
            except OSError:
                os.close(descriptor)
    descriptor = os.open(path, os.O_RDONLY)
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(descriptor, 48, 1)  # F_NOCACHE
        return Opened(descriptor, "bypassed (F_NOCACHE)")
    if hasattr(os, "posix_fadvise"):
        return Opened(descriptor, "dropped before each repeat (posix_fadvise)", drops=True)
    return Opened(descriptor, "not bypassed")


def file_system_of(path: Path) -> str:
    """The kind of file system that holds a path: ext4, tmpfs, nfs and so on; "unknown" where the system does not say."""
    try:
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return "unknown"
    holding = [(len(fields[1]), fields[2]) for fields in mounts if path.resolve().is_relative_to(fields[1])]
    return max(holding, default=(0, "unknown"))[1]
