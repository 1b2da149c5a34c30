"""Watch a loader: each batch is a step, each sample is hashed, each fetch is timed; the loop around it stays as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..record.probe import Probe


class WatchedLoader:
    """A loader in the place of another: it yields the same batches, and has the same attributes and length.

    Each pass over it is an epoch, counted from 0, or from `first_epoch` where a run goes on. See `Probe.batches` for what
    is recorded.

    Args:
        loader: a DataLoader, or any iterable of batches.
        probe: this rank's.
        name: under which samples are recorded: "train", or "validation" for what is read beside the training.
        ids_at: where in a batch the samples' ids are (a position, or a key of a mapping); None if it has none.
        first_epoch: the number of the first pass.
    """

    def __init__(
        self,
        loader: Iterable[Any],
        probe: Probe,
        *,
        name: str = "train",
        ids_at: int | str | None = None,
        first_epoch: int = 0,
    ) -> None:
        self._loader, self._probe, self._name, self._ids_at = loader, probe, name, ids_at
        self._epoch = first_epoch

    def __iter__(self) -> Iterator[Any]:
        epoch, self._epoch = self._epoch, self._epoch + 1
        return self._probe.batches(self._loader, epoch=epoch, name=self._name, ids_at=self._ids_at)

    def __len__(self) -> int:
        return len(self._loader)  # pyright: ignore[reportArgumentType] - raises TypeError as the loader does

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_loader" not in vars(self):
            raise AttributeError(name)
        return getattr(self._loader, name)


def watch_loader(loader: Iterable[Any], probe: Probe, *, name: str = "train", ids_at: int | str | None = None) -> Any:
    """Give the loader to use in the place of yours, so that what it yields is recorded. See `WatchedLoader`.

    *Called on* every rank. An epoch that is left early, or begun again, is told from a whole one.
    """
    return WatchedLoader(loader, probe, name=name, ids_at=ids_at)
