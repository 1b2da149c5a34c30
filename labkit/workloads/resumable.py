"""What a run needs beside weights to go on where it stopped: the place in the data, and every random generator.

Small enough to lift into a program of your own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
import torch

from ..errors import UsageError

Batch = TypeVar("Batch")


class ResumableSampler:
    """A batch sampler that knows how far training came, and starts there.

    One permutation of the data an epoch, the same on every rank, is cut into global batches; each rank takes every W-th
    sample of each. Each sample comes exactly once an epoch, and what a step trains on does not depend on the number of
    ranks: a run may go on with another. Ranks' shares may differ by one sample (the last global batch of an epoch may
    leave a rank none), so divide the *sum* of the loss by `global_size`, not by a rank's own share.

    Call `advance()` once a step is *trained*: a loader with workers fetches ahead, and what it fetched is not done.

    Args:
        num_samples: size N of the data.
        global_batch: samples of one step, all ranks together.
        rank, world_size: whose share this copy yields.
        seed: of the order; the same on every rank.

    Attributes:
        epoch: the present epoch, from 0.
        consumed: samples of this epoch that all ranks together have trained on. At the end of an epoch it stays at N
            until `next_epoch()`, so that a run that stopped between two epochs goes on between them.
    """

    def __init__(self, num_samples: int, global_batch: int, *, rank: int = 0, world_size: int = 1, seed: int = 0) -> None:
        if not 0 <= rank < world_size:
            raise UsageError(f"rank must be from 0 to world_size - 1 = {world_size - 1}; given {rank}")
        if not world_size <= global_batch:
            raise UsageError(f"a global batch of {global_batch} leaves some of {world_size} ranks no sample; make it larger")
        if num_samples < 1:
            raise UsageError(f"there must be samples to read; given num_samples={num_samples}")
        self.num_samples, self.global_batch = num_samples, global_batch
        self.rank, self.world_size, self.seed = rank, world_size, seed
        self.epoch, self.consumed = 0, 0

    def __iter__(self) -> Iterator[list[int]]:
        """This rank's share of each global batch that is still to come in this epoch."""
        order = self._order()
        for start in range(self.consumed, self.num_samples, self.global_batch):
            yield order[start : start + self.global_batch][self.rank :: self.world_size]

    def __len__(self) -> int:
        """Global batches still to come in this epoch."""
        return -(-(self.num_samples - self.consumed) // self.global_batch)

    @property
    def global_size(self) -> int:
        """Samples of the present step, all ranks together."""
        return min(self.global_batch, self.num_samples - self.consumed)

    def advance(self) -> None:
        """The present step is trained."""
        self.consumed += self.global_size

    def next_epoch(self) -> None:
        """Go on to the next epoch, in a new order."""
        self.epoch, self.consumed = self.epoch + 1, 0

    def state_dict(self) -> dict[str, int]:
        """The place in the data, and what it is a place in."""
        return {
            "epoch": self.epoch, "consumed": self.consumed, "num_samples": self.num_samples, "seed": self.seed,
        }  # fmt: skip

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go to a place. It counts samples, so neither the batch nor the number of ranks needs to be the same.

        Raises:
            UsageError: a place in other data, or in another order.
        """
        for name in ("num_samples", "seed"):
            if state[name] != getattr(self, name):
                raise UsageError(
                    f"this place is in data with {name}={state[name]}, the sampler has {getattr(self, name)}; "
                    "go on with the same data and seed, or start anew"
                )
        if not 0 <= state["consumed"] <= self.num_samples or state["epoch"] < 0:
            raise UsageError(f"no place in {self.num_samples} samples: {dict(state)}")
        self.epoch, self.consumed = state["epoch"], state["consumed"]

    def _order(self) -> list[int]:
        shuffle = torch.Generator().manual_seed((self.seed * 1_000_003 + self.epoch) % 2**63)
        return torch.randperm(self.num_samples, generator=shuffle).tolist()


def random_state() -> dict[str, Any]:
    """The state of every global random generator of this process: python's, numpy's, torch's, and each GPU's in use."""
    state: dict[str, Any] = {"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.get_rng_state()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def set_random_state(state: Mapping[str, Any]) -> None:
    """Set what `random_state` gave. Call it *after* `iter(loader)`, which draws from torch's generator: see `started`."""
    if "python" in state:
        random.setstate(state["python"])
    if "numpy" in state:
        np.random.set_state(state["numpy"])
    if "torch" in state:
        torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])


def seed_everything(seed: int) -> None:
    """Seed every global random generator of this process."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def started(loader: Iterable[Batch], then: Callable[[], None]) -> Iterator[Batch]:
    """Yield the loader's batches, calling `then` between `iter(loader)` and the first of them.

    `iter(DataLoader)` draws a seed for its workers, also when it has none. In the run that was not interrupted that draw
    came long before; a run that goes on must not count it again. So random generators are set here.
    """
    batches = iter(loader)
    then()
    yield from batches
