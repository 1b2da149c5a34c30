"""Published figures, with their addresses: what others reached and what failed. Every value is `quoted`.

The files lie in data/published. Published runs are those that somebody chose to show, on hardware of known peak: shares
taken from them show the field from its better side.
"""

from __future__ import annotations

import csv
import functools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from ..errors import RecordError, UsageError
from ..record.files import MIB, read_regular
from ..theory.flops import FULL_ATTENTION, Convention
from .published_rows import CheckpointRow, CollectiveRow, FailureRow, MatmulRow, PublishedRow, TrainingRow
from .shipped import data_folder

TOLERANCE = 0.01
"""How far a recomputed figure may be from the printed one: most pages print two to four digits."""

BAND_EDGES = (0.20, 0.30, 0.40, 0.45, 0.55, 0.60)
"""Edges of the bands that practitioners name: under 20 % a bug, 30 to 40 passes, 45 to 55 good, over 60 exceptional."""

Row = TypeVar("Row", bound=PublishedRow)


def read(path: Path, kind: type[Row]) -> tuple[Row, ...]:
    """Read and check one table.

    Raises:
        RecordError: names the file and the line: an unknown or missing column, a value that is no number, negative or not
            in its list, an id given twice. Nothing is skipped.
    """
    lines = read_regular(path, 16 * MIB).decode().splitlines()
    rows: list[Row] = []
    seen: dict[str, int] = {}
    table = csv.DictReader(lines, strict=True)
    for number, cells in enumerate(table, start=2):
        if None in cells or None in cells.values():
            raise RecordError(f"{path}:{number}: expected {len(table.fieldnames or ())} cells; given {lines[number - 1]!r}")
        try:
            row = msgspec.convert({name: text for name, text in cells.items() if text}, kind, strict=False)
        except msgspec.ValidationError as error:
            raise RecordError(f"{path}:{number}: {error}; in row {cells.get('id', '')!r}") from None
        if row.id in seen:
            raise RecordError(f"{path}:{number}: id {row.id!r} is already on line {seen[row.id]}")
        seen[row.id] = number
        rows.append(row)
    return tuple(rows)


def _shipped(name: str, kind: type[Row]) -> tuple[Row, ...]:
    return read(data_folder() / "published" / name, kind)


@functools.cache
def training() -> tuple[TrainingRow, ...]:
    """Published training runs, in the file's order."""
    return _shipped("training.csv", TrainingRow)


@functools.cache
def collectives() -> tuple[CollectiveRow, ...]:
    """Published collectives."""
    return _shipped("collectives.csv", CollectiveRow)


@functools.cache
def matmuls() -> tuple[MatmulRow, ...]:
    """Published matmul ceilings."""
    return _shipped("matmul.csv", MatmulRow)


@functools.cache
def failures() -> tuple[FailureRow, ...]:
    """Published failures, restarts and times between them."""
    return _shipped("failures.csv", FailureRow)


@functools.cache
def checkpoints() -> tuple[CheckpointRow, ...]:
    """Published times of saving."""
    return _shipped("checkpoints.csv", CheckpointRow)


@dataclass(frozen=True)
class Band:
    """How many published runs lie in low <= MFU < high; `high` is None for the last band.

    Attributes:
        num_rows: how many.
        share: of all rows with an MFU.
    """

    low: float
    high: float | None
    num_rows: int
    share: float


def _mfu_by_source(rows: Iterable[TrainingRow], by: Convention) -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if (value := row.mfu_by(by)) is not None:
            found[row.source].append(value)
    if not found:
        raise UsageError("no row has both a throughput and a known peak, so there is no MFU to take a share of")
    return found


def share_below(
    rows: Iterable[TrainingRow], threshold: float, *, by: Convention = FULL_ATTENTION, per_source: bool = False
) -> float:
    """Give the share of rows whose MFU is below a threshold. Rows without throughput or peak are left out.

    Args:
        rows: as from `training()`.
        threshold: a fraction: 0.30, not 30.
        by: one convention for all rows; those they were printed with differ by a third and more.
        per_source: the mean of each source's own share, so that a page with many rows counts no more than one with few.

    Raises:
        UsageError: the threshold is not between 0 and 1, or no row has an MFU.
    """
    if not 0 < threshold <= 1:
        raise UsageError(f"threshold is a fraction above 0 and up to 1; given {threshold!r}: write 0.30 for 30 %")
    found = _mfu_by_source(rows, by)
    shares = [sum(value < threshold for value in values) / len(values) for values in found.values()]
    weights = [1 if per_source else len(values) for values in found.values()]
    return sum(share * weight for share, weight in zip(shares, weights, strict=True)) / sum(weights)


def bands(
    rows: Iterable[TrainingRow], edges: Sequence[float] = BAND_EDGES, *, by: Convention = FULL_ATTENTION
) -> tuple[Band, ...]:
    """Count the rows between the edges, by one convention. Rows without throughput or peak are left out.

    Raises:
        UsageError: the edges do not rise from above 0, or no row has an MFU.
    """
    if not edges or edges[0] <= 0 or list(edges) != sorted(set(edges)):
        raise UsageError(f"edges must be fractions that rise from above 0; given {tuple(edges)}")
    values = [value for of_source in _mfu_by_source(rows, by).values() for value in of_source]
    limits: list[tuple[float, float | None]] = list(zip([0.0, *edges], [*edges, None], strict=True))
    counts = [sum(low <= value and (high is None or value < high) for value in values) for low, high in limits]
    return tuple(Band(low, high, n, n / len(values)) for (low, high), n in zip(limits, counts, strict=True))
