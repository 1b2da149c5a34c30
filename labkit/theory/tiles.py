"""What a matrix product loses where its shape does not fit the device: to tiles that hang over, and to a last wave of few.

A GPU cuts the result into tiles, one at a time for each of its multiprocessors, and computes whole tiles in whole waves. So
the work is that of all tiles of all waves, whatever share of it was asked for (NVIDIA, Matrix Multiplication Background
User's Guide, 2023, chapter 3). Arithmetic only: a library may choose another tile for a shape, or split the sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import UsageError


@dataclass(frozen=True)
class Tiling:
    """A result of a product in tiles.

    Attributes:
        tiles: how many it takes.
        waves: in how many waves they are computed.
        in_tiles: share of the tiles' elements that were asked for.
        in_waves: share of the waves' places that hold a tile.
    """

    tiles: int
    waves: int
    in_tiles: float
    in_waves: float

    @property
    def useful(self) -> float:
        """Share of the device's work that was asked for, at the most."""
        return self.in_tiles * self.in_waves


def tiling(rows: int, columns: int, tile: tuple[int, int], multiprocessors: int) -> Tiling:
    """Tiles and waves of a result [rows, columns].

    Raises:
        UsageError: a number below 1.

    >>> tiling(2304, 1536, (256, 128), 108)
    Tiling(tiles=108, waves=1, in_tiles=1.0, in_waves=1.0)
    >>> tiling(2305, 1536, (256, 128), 108).waves
    2
    """
    if min(rows, columns, *tile, multiprocessors) < 1:
        raise UsageError(f"sizes are at least 1; given {rows} × {columns} in tiles of {tile}, {multiprocessors} at once")
    tiles = math.ceil(rows / tile[0]) * math.ceil(columns / tile[1])
    waves = math.ceil(tiles / multiprocessors)
    return Tiling(
        tiles=tiles,
        waves=waves,
        in_tiles=rows * columns / (tiles * tile[0] * tile[1]),
        in_waves=tiles / (waves * multiprocessors),
    )
