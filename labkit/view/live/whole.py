"""A run that is over, ready to be drawn: its rows joined for the first look, and whole again where somebody looks closer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...record.follow import counters_of_run
from ...record.gone import gone_of_run
from ...record.schema import Record
from ...record.spans import Names, joined, losses_of_run, origin_of, rows_of_run, steps_of_run, within
from .kinds import kinds

MOST_ROWS = 12_000
"""Sent at once; what is looked at more closely is sent anew."""
MOST_STEPS = 40_000
MOST_LOSSES = 8_000


@dataclass
class Whole:
    """One run of a record as the page draws it.

    Attributes:
        record: whose run under study it is.
        title: what ran, in words.
    """

    record: Record
    title: str

    def __post_init__(self) -> None:
        run, self._names = self.record.run, Names()
        self._origin = origin_of(run)
        self.rows = rows_of_run(run, self._names, self._origin)
        self.steps = thinned(steps_of_run(run, self._origin), MOST_STEPS)
        self.losses = thinned(losses_of_run(run), MOST_LOSSES)

    @cached_property
    def overview(self) -> np.ndarray:
        """Rows of the whole run."""
        return joined(self.rows, MOST_ROWS)

    def message(self, side: str) -> tuple[dict, list[bytes]]:
        """What the page needs to draw it, as JSON and as bytes."""
        run = self.record.run
        dark = gone_of_run(run, self._origin)
        content = {
            "type": "whole",
            "side": side,
            "title": self.title,
            "ranks": run.world_size,
            "kinds": kinds(self._names.said),
            "counters": {str(rank): found for rank, found in counters_of_run(run).items()},
            "dark": [[one.rank, one.start_ms, one.end_ms, one.word] for one in dark],
            "joined": len(self.overview) < len(self.rows),
        }
        return content, [as_bytes(self.overview), as_bytes(self.steps), as_bytes(self.losses)]

    def window(self, side: str, start_ms: float, end_ms: float) -> tuple[dict, list[bytes]]:
        """The rows of a part of the run."""
        rows = joined(within(self.rows, start_ms, end_ms), MOST_ROWS)
        return {"type": "window", "side": side, "from": start_ms, "to": end_ms}, [as_bytes(rows)]


def thinned(values: np.ndarray, most: int) -> np.ndarray:
    """Every so many of too many rows, and the last one."""
    if len(values) <= most:
        return values
    kept = values[:: -(-len(values) // most)]
    return kept if np.array_equal(kept[-1:], values[-1:], equal_nan=True) else np.concatenate([kept, values[-1:]])


def as_bytes(values: np.ndarray) -> bytes:
    """Rows as the page reads them: float64, little-endian, row after row."""
    return np.ascontiguousarray(values, "<f8").tobytes()
