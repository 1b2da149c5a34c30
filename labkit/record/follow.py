"""Follow a run while it goes on: what its ranks appended to their files since the last look, and nothing twice.

A rank writes a whole line when a step ends, so a look finds whole lines and at most one that is cut. Samples are skipped.
A look reads no more than `MOST_BYTES` of each rank: where ranks write faster than that, what lies between is left out and
counted, since a picture of a run must not slow the run.
"""

from __future__ import annotations

import contextlib
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from .bounds import Int, Nanoseconds
from .gone import KILLS, WITH_IT, Dark
from .rank_files import rank_file
from .schema import Run
from .spans import Names, Tracks, as_rows, joined, rows_of_step

MOST_BYTES = 256 * 2**10
"""Read of one rank in one look."""
MOST_ROWS = 800
"""Spans that one look gives, those of all ranks together; more are joined."""

SHOWN_COUNTERS = ("version_pulled", "version_pushed", "wire_sent_bytes", "store_bytes", "all_reduce_bytes")
"""What is said of a rank while it runs, those that it records; bytes add up."""

_Names = dict[str, Any]


class _Head(msgspec.Struct, tag="head", tag_field="kind"):
    rank: Int


class _Step(msgspec.Struct, tag="step", tag_field="kind"):
    """A step without its samples: what is not named here is skipped and not decoded."""

    step: Int
    start_ns: Nanoseconds
    end_ns: Nanoseconds
    spans: Annotated[list[tuple[str, str, Nanoseconds, Nanoseconds]], msgspec.Meta(max_length=100_000)] = []
    scalars: _Names = {}
    counts: _Names = {}


class _Event(msgspec.Struct, tag="event", tag_field="kind"):
    name: str
    step: Int
    time_ns: Nanoseconds
    fields: _Names = {}


class _Seen(msgspec.Struct, tag="seen", tag_field="kind"):
    pass


class _Digest(msgspec.Struct, tag="digest", tag_field="kind"):
    pass


class _End(msgspec.Struct, tag="end", tag_field="kind"):
    time_ns: Nanoseconds


_Line = _Head | _Step | _Event | _Seen | _Digest | _End
_decode = msgspec.json.Decoder(_Line).decode


class Tail:
    """One file that grows.

    Args:
        path: the file; it need not exist yet.

    Attributes:
        skipped_bytes: left out because more was written than is read.
        unreadable: whole lines that are none of a rank's.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.skipped_bytes = self.unreadable = 0
        self._fd = -1
        self._at = 0
        self._rest = b""
        self._inside = False  # of a line whose beginning was left out

    def read(self, most_bytes: int = MOST_BYTES) -> list[_Line]:
        """The lines that were finished since the last call."""
        lines = []
        for raw in self._new_lines(most_bytes):
            try:
                lines.append(_decode(raw))
            except (msgspec.DecodeError, RecursionError):
                self.unreadable += bool(raw.strip())
        return lines

    def _new_lines(self, most_bytes: int) -> list[bytes]:
        if self._fd < 0 and not self._open():
            return []
        try:
            size = os.fstat(self._fd).st_size
            if size <= self._at:
                return []
            if size - self._at > most_bytes:
                self.skipped_bytes += size - self._at - most_bytes + len(self._rest)
                self._at, self._rest, self._inside = size - most_bytes, b"", True
            new = os.pread(self._fd, size - self._at, self._at)
        except OSError:
            return []
        self._at += len(new)
        *whole, rest = (self._rest + new).split(b"\n")
        if self._inside and whole:
            whole, self._inside = whole[1:], False
        if len(rest) > most_bytes:  # a line longer than all that is read: leave it out
            self.skipped_bytes += len(rest)
            rest, self._inside = b"", True
        self._rest = rest
        return whole

    def _open(self) -> bool:
        with contextlib.suppress(OSError, ValueError):
            if stat.S_ISREG(os.stat(self.path).st_mode):  # a pipe would keep the reader waiting
                self._fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        return self._fd >= 0

    def close(self) -> None:
        """Let go of the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


@dataclass
class Look:
    """What is new since the last look.

    Attributes:
        spans: rows, see `spans.COLUMNS`.
        steps: [steps, (rank, step, start_ms, end_ms, attempt)].
        losses: [values, (rank, step, loss)].
        counters: by rank and name, the newest.
        names: of spans, all so far, by their numbers.
        dark: all so far.
        left_out_bytes: of all ranks, in all looks.
    """

    spans: np.ndarray
    steps: np.ndarray
    losses: np.ndarray
    counters: dict[int, dict[str, float]] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    dark: list[Dark] = field(default_factory=list)
    left_out_bytes: int = 0

    @property
    def is_empty(self) -> bool:
        return not (len(self.spans) or len(self.steps) or len(self.losses))


class Follower:
    """Follows the files of one launch, through its restarts. Not for several threads at once.

    Args:
        folder: where the ranks write.
        ranks: how many.
    """

    def __init__(self, folder: Path, ranks: int) -> None:
        self.folder, self.ranks = folder, ranks
        self.names = Names()
        self._origin_ns: int | None = None
        self._attempt = 0
        self._tails = self._open(0)
        self._tracks = Tracks()
        self._last_ns: dict[int, int] = {}
        self._ended: set[int] = set()
        self._sums: dict[int, dict[str, float]] = {rank: {} for rank in range(ranks)}
        self._dark: list[Dark] = []
        self._left_out = 0

    def _open(self, attempt: int) -> list[Tail]:
        return [Tail(rank_file(self.folder, rank, attempt)) for rank in range(self.ranks)]

    def look(self, attempt: int = 0, lost: tuple[int, ...] = ()) -> Look:
        """What the ranks wrote since the last look.

        Args:
            attempt: the newest attempt; its files are followed once those before are read.
            lost: ranks whose processes are gone.
        """
        spans, steps, losses = [], [], []
        while True:
            for rank, tail in enumerate(self._tails):
                for line in tail.read():
                    self._take(rank, line, spans, steps, losses)
            if self._attempt >= attempt:
                break
            self._next_attempt()
        for rank in lost:
            if rank not in self._ended:
                self._darken(rank, self._last_ns.get(rank), "its process is gone")
        left_out = self._left_out + sum(tail.skipped_bytes for tail in self._tails)
        return Look(
            joined(as_rows(spans), MOST_ROWS),
            np.array(steps, np.float64).reshape(-1, 5),
            np.array(losses, np.float64).reshape(-1, 3),
            {rank: dict(found) for rank, found in self._sums.items() if found},
            list(self.names.said),
            list(self._dark),
            left_out,
        )

    def close(self) -> None:
        """Let go of all files."""
        for tail in self._tails:
            tail.close()

    def ms(self, time_ns: int) -> float:
        """A moment of the ranks' clock, in milliseconds since the first step began."""
        return 0.0 if self._origin_ns is None else (time_ns - self._origin_ns) / 1e6

    def _next_attempt(self) -> None:
        """All ranks were ended, and come again."""
        for rank in range(self.ranks):
            if rank not in self._ended:
                self._darken(rank, self._last_ns.get(rank), WITH_IT)
        self._left_out += sum(tail.skipped_bytes for tail in self._tails)
        self.close()
        self._attempt += 1
        self._tails, self._ended = self._open(self._attempt), set()

    def _darken(self, rank: int, time_ns: int | None, word: str) -> None:
        if time_ns is not None and not any(dark.rank == rank and dark.end_ms is None for dark in self._dark):
            self._dark.append(Dark(rank, self.ms(time_ns), word))

    def _take(self, rank: int, line: _Line, spans: list, steps: list, losses: list) -> None:
        if isinstance(line, _Step):
            origin_ns = self._begins(line.start_ns)
            self._last_ns[rank] = line.end_ns
            self._lighten(rank, line.start_ns)
            spans += rows_of_step(rank, line.step, line.spans, self.names, self._tracks, origin_ns)
            steps.append((rank, line.step, self.ms(line.start_ns), self.ms(line.end_ns), self._attempt))
            loss = as_number(line.scalars.get("loss_local"))
            if loss is not None:
                losses.append((rank, line.step, loss))
            add_counters(self._sums[rank], line.counts, line.scalars)
        elif isinstance(line, _Event):
            if line.name == "fault" and line.fields.get("fault") in KILLS:
                self._begins(line.time_ns)
                self._darken(rank, line.time_ns, f"killed in step {line.step}")
        elif isinstance(line, _End):
            self._ended.add(rank)

    def _begins(self, time_ns: int) -> int:
        if self._origin_ns is None:
            self._origin_ns = time_ns
        return self._origin_ns

    def _lighten(self, rank: int, time_ns: int) -> None:
        for dark in self._dark:
            if dark.rank == rank and dark.end_ms is None and self.ms(time_ns) > dark.start_ms:
                dark.end_ms = self.ms(time_ns)


def add_counters(sums: dict[str, float], counts: Mapping[str, Any], scalars: Mapping[str, Any]) -> None:
    """Take in one step's counters: bytes add up, of others the newest counts."""
    for name in SHOWN_COUNTERS:
        value = as_number(counts.get(name, scalars.get(name)))
        if value is not None:
            sums[name] = value + (sums.get(name, 0.0) if name.endswith("_bytes") else 0.0)


def counters_of_run(run: Run) -> dict[int, dict[str, float]]:
    """By rank what its counters stand at in the end; in the last attempt where there were several."""
    found: dict[int, dict[str, float]] = {}
    for log in run.ranks:
        for step in log.steps:
            add_counters(found.setdefault(log.head.rank, {}), step.counts, step.scalars)
    return {rank: sums for rank, sums in found.items() if sums}


def as_number(value: Any) -> float | None:
    """A number as a rank may write it, also as a word ("nan"); None of what is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if isinstance(value, str) or math.isfinite(found) else None
