"""The 8×8 handwritten digits: 1,797 images, shipped in data/ (see data/README.md for source and licence).

Shapes: an item is (image [64], label [], id); a batch of B is (images [B, 64], labels [B], ids [B]).
"""

from __future__ import annotations

import functools

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from ..facts.shipped import data_folder

NUM_DIGITS = 1797
NUM_PIXELS = 64
NUM_CLASSES = 10


@functools.cache
def _arrays() -> tuple[np.ndarray, np.ndarray]:
    with np.load(data_folder() / "digits" / "digits.npz", allow_pickle=False) as kept:
        return kept["images"].reshape(NUM_DIGITS, NUM_PIXELS), kept["labels"]


class Digits(Dataset):
    """The first `num_samples` digits. An item is (image [64] in 0..1, label, id).

    Args:
        num_samples: 1 to 1,797.
        dtype: of the images.
    """

    def __init__(self, num_samples: int = NUM_DIGITS, dtype: torch.dtype = torch.float32) -> None:
        images, labels = _arrays()
        self.images = torch.from_numpy(images[:num_samples].astype(np.float64) / 16.0).to(dtype)
        self.labels = torch.from_numpy(labels[:num_samples].astype(np.int64))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        return self.images[index], self.labels[index], index


class DigitStream(IterableDataset):
    """The digits as a stream, in an order that a seed decides.

    Args:
        digits: the data.
        seed: of the order.
        rank, world_size, split_workers: which share this copy yields. With world_size 1 and split_workers False every
            copy yields everything: in each rank, and again in each DataLoader worker of each rank.
    """

    def __init__(
        self, digits: Digits, *, seed: int, rank: int = 0, world_size: int = 1, split_workers: bool = False
    ) -> None:
        if not 0 <= rank < world_size:
            raise ValueError(f"rank must be from 0 to world_size - 1 = {world_size - 1}; given {rank}")
        self.digits, self.seed = digits, seed
        self.rank, self.world_size, self.split_workers = rank, world_size, split_workers

    def __iter__(self):
        order = torch.randperm(len(self.digits), generator=torch.Generator().manual_seed(self.seed)).tolist()
        worker = get_worker_info()
        share, shares = self.rank, self.world_size
        if self.split_workers and worker is not None:
            share, shares = share * worker.num_workers + worker.id, shares * worker.num_workers
        for index in order[share::shares]:
            yield self.digits[index]
