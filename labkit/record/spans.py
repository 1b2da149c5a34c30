"""Spans as rows of numbers, to be drawn: what each rank does when, joined where there are too many for a screen.

A row is `COLUMNS`, all float64. Times are milliseconds from an origin that whoever makes the rows chooses. What is joined
says so: how many spans a row stands for, and how long they took together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ..words import printable
from .schema import LANES, RankLog, Run

COLUMNS = ("rank", "lane", "track", "name", "step", "start_ms", "end_ms", "count", "busy_ms", "order")
"""lane: place in LANES; track: 0, and more where spans of one lane overlap; name: number in `Names`; order: which of the
spans of this name in its step, from 1 on; 0 for a row that stands for several spans."""

RANK, LANE, TRACK, NAME, STEP, START, END, COUNT, BUSY, ORDER = range(len(COLUMNS))
MOST_TRACKS = 4
"""Of one lane; spans that overlap beyond that lie on the last."""
MOST_NAMES = 200
LONGEST_NAME = 60


class Names:
    """Numbers for the names of spans, in the order in which they are met. Text in them acts on nothing that shows it."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        """The number of a name; of names beyond the first 200 one number for all."""
        found = self._numbers.get(name)
        if found is None:
            if len(self._numbers) >= MOST_NAMES:
                return self._numbers.setdefault("others", self._new("others"))
            found = self._numbers[name] = self._new(printable(name, most=LONGEST_NAME))
        return found

    def _new(self, said: str) -> int:
        if said in self.said:
            return self.said.index(said)
        self.said.append(said)
        return len(self.said) - 1


class Tracks:
    """Which track of its lane a span lies on, so that none covers another. It remembers what lies there already."""

    def __init__(self) -> None:
        self._ends: dict[tuple[int, int], list[float]] = {}

    def place(self, rank: int, lane: int, start: float, end: float) -> int:
        """The first track that is free at `start`; spans of one rank and lane come in the order of their starts."""
        ends = self._ends.setdefault((rank, lane), [])
        for track, free in enumerate(ends):
            if free <= start:
                ends[track] = end
                return track
        if len(ends) < MOST_TRACKS:
            ends.append(end)
            return len(ends) - 1
        ends[-1] = max(ends[-1], end)
        return MOST_TRACKS - 1


Spanned = Sequence[tuple[str, str, int, int]]
"""(name, lane, start_ns, end_ns) of a step's spans."""


def rows_of_step(
    rank: int, step: int, spans: Spanned, names: Names, tracks: Tracks, origin_ns: int
) -> list[tuple[float, ...]]:
    """The rows of one step, in the order of their starts."""
    found, ordinals = [], {}
    for name, lane, start_ns, end_ns in sorted(spans, key=_by_start):
        place = LANES.index(lane) if lane in LANES else 0
        start, end = (start_ns - origin_ns) / 1e6, max(start_ns, end_ns) / 1e6 - origin_ns / 1e6
        ordinals[name] = ordinals.get(name, 0) + 1
        track = tracks.place(rank, place, start, end)
        found.append((rank, place, track, names.number(name), step, start, end, 1, end - start, ordinals[name]))
    return found


def _by_start(span: tuple[str, str, int, int]) -> tuple[int, int]:
    return span[2], -span[3]


def as_rows(rows: Iterable[Sequence[float]]) -> np.ndarray:
    """[rows, columns] of float64."""
    return np.array(list(rows), np.float64).reshape(-1, len(COLUMNS))


def rows_of_run(run: Run, names: Names, origin_ns: int) -> np.ndarray:
    """All spans of a run, of its earlier attempts too."""
    tracks, found = Tracks(), []
    for log in _logs(run):
        for step in log.steps:
            spans = [(span.name, span.lane, span.start_ns, span.end_ns) for span in step.spans]
            found += rows_of_step(log.head.rank, step.step, spans, names, tracks, origin_ns)
    return as_rows(found)


def _logs(run: Run) -> list[RankLog]:
    return [log for attempt in (*run.earlier, run.ranks) for log in attempt]


def origin_of(run: Run) -> int:
    """When the first step began on any rank, in nanoseconds; 0 of a run without steps."""
    return min((log.steps[0].start_ns for log in _logs(run) if log.steps), default=0)


def steps_of_run(run: Run, origin_ns: int) -> np.ndarray:
    """[steps, (rank, step, start_ms, end_ms, attempt)] of every rank and attempt."""
    rows = [
        (log.head.rank, step.step, (step.start_ns - origin_ns) / 1e6, (step.end_ns - origin_ns) / 1e6, log.head.attempt)
        for log in _logs(run)
        for step in log.steps
    ]
    return np.array(rows, np.float64).reshape(-1, 5)


def losses_of_run(run: Run) -> np.ndarray:
    """[values, (rank, step, loss)]: the last value of each step; NaN and infinity as they are."""
    last = {
        (log.head.rank, step.step): step.scalar("loss_local")
        for log in _logs(run)
        for step in log.steps
        if "loss_local" in step.scalars
    }
    return np.array([(*where, value) for where, value in last.items()], np.float64).reshape(-1, 3)


def within(rows: np.ndarray, start_ms: float, end_ms: float) -> np.ndarray:
    """The rows that are under way at some moment of an interval."""
    return rows[(rows[:, END] >= start_ms) & (rows[:, START] <= end_ms)]


def joined(rows: np.ndarray, most: int) -> np.ndarray:
    """At most about `most` rows: neighbours of one name are joined first, then whatever is nearest.

    A row that stands for several spans has the name of the one that takes the most of it, and no order.
    """
    if len(rows) <= most:
        return rows
    rows = rows[np.lexsort((rows[:, START], rows[:, TRACK], rows[:, LANE], rows[:, RANK]))]
    whole = float(rows[:, END].max() - rows[:, START].min())
    gap = whole / most
    for _ in range(6):
        rows = _joined(rows, lambda a, b, gap=gap: (a[:, NAME] == b[:, NAME]) & (b[:, START] - a[:, END] <= gap))
        if len(rows) <= most:
            return rows
        gap *= 2
    wide = whole / most
    while len(rows) > most and wide < 4 * whole:  # too many names in turn: one row for each slice of time
        rows = _joined(rows, lambda a, b, wide=wide: a[:, START] // wide == b[:, START] // wide)
        wide *= 2
    return rows


def _joined(rows: np.ndarray, near: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """Join neighbours of one rank, lane and track for which `near(before, after)` holds."""
    before, after = rows[:-1], rows[1:]
    same = (before[:, RANK] == after[:, RANK]) & (before[:, LANE] == after[:, LANE]) & (before[:, TRACK] == after[:, TRACK])
    first = np.concatenate([[True], ~(same & near(before, after))])
    if first.all():
        return rows
    at = np.flatnonzero(first)
    found = rows[at].copy()
    found[:, END] = np.maximum.reduceat(rows[:, END], at)
    for column in (COUNT, BUSY):
        found[:, column] = np.add.reduceat(rows[:, column], at)
    lengths = np.diff(np.append(at, len(rows)))
    group = np.repeat(np.arange(len(at)), lengths)
    longest = np.lexsort((rows[:, BUSY], group))[np.cumsum(lengths) - 1]
    found[:, NAME] = rows[longest, NAME]
    found[lengths > 1, ORDER] = 0
    return found
