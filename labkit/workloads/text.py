"""Real text that every machine has: the bytes of Python's own standard library, read at run time.

Shapes: tokens [B, S] and the next tokens [B, S], int64.
"""

from __future__ import annotations

import functools
import sysconfig
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset

VOCAB = 256


@functools.cache
def stdlib_bytes(limit: int = 1_000_000) -> np.ndarray:
    """The first `limit` bytes of the standard library's modules, in the order of their names: uint8 [limit]."""
    parts, total = [], 0
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        data = path.read_bytes()
        parts.append(data)
        total += len(data)
        if total >= limit:
            break
    return np.frombuffer(b"".join(parts)[:limit], dtype=np.uint8)


class Windows(IterableDataset):
    """An endless stream of batches of text windows: (tokens [B, S], next tokens [B, S]), int64.

    Args:
        batch, seq: B and S.
        seed: of the places where windows begin.
        wait_s: seconds that each batch costs before it is ready, by waiting, as a slow store or decoder would.
    """

    def __init__(self, batch: int, seq: int, *, seed: int, wait_s: float = 0.0) -> None:
        self.batch, self.seq, self.seed, self.wait_s = batch, seq, seed, wait_s

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        text = torch.from_numpy(stdlib_bytes().astype(np.int64))
        generator = torch.Generator().manual_seed(self.seed)
        while True:
            if self.wait_s:
                time.sleep(self.wait_s)
            begins = torch.randint(len(text) - self.seq - 1, (self.batch,), generator=generator).tolist()
            rows = torch.stack([text[begin : begin + self.seq + 1] for begin in begins])
            yield rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def text_loader(
    batch: int, seq: int, *, seed: int, wait_ms: float = 0.0, workers: Mapping[str, Any] | None = None
) -> DataLoader:
    """Batches of text; with one worker, a batch is prepared while the last one is computed on.

    Args:
        workers: the DataLoader's arguments for its workers, as `ranks.context.worker_options` makes them; none if None.
    """
    stream = Windows(batch, seq, seed=seed, wait_s=wait_ms / 1000)
    return DataLoader(stream, batch_size=None, **(workers or {}))
