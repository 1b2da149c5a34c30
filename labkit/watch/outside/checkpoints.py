"""All that watches checkpoints: saves, loads, resumes, averaged weights, and evaluations that may leave these in a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...record.probe import Probe
from .averages import Averages
from .distributed_checkpoints import DistributedCheckpoints
from .evaluations import Evaluations
from .loads import Loads
from .patches import Patches
from .positions import Positions
from .resumes import Resumes
from .safetensors_files import SafetensorsFiles
from .saves import Saves


class Checkpoints:
    """What is saved, loaded and gone on from. *Called on* each rank; no collective is made.

    Args:
        probe: this rank's.
        models: the modules that the script trains.
        collectives: how many the script called.
    """

    def __init__(self, probe: Probe, models: Callable[[], Iterable[Any]], collectives: Callable[[], int]) -> None:
        self._updates = 0
        self.saves = Saves(probe, lambda states: self.averages.saved(states))
        self.loads = Loads(probe, self.saves, lambda: (self._updates, self.evaluations.count))
        self.resumes = Resumes(probe, self.loads.seen, self.saves.schedulers, self.saves.scalers)
        self._other_formats = (
            DistributedCheckpoints(self.saves, self.loads, self.resumes),
            SafetensorsFiles(self.saves, self.loads),
        )
        self.averages = Averages(probe, models, self.loads.seen)
        self.evaluations = Evaluations(probe, self.averages.holds, collectives)
        self.positions = Positions(probe)

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        watchers = (self.saves, self.loads, self.resumes, self.evaluations, self.averages, self.positions)
        for watcher in (*watchers, *self._other_formats):
            watcher.attach(patches)

    def updated(self, optimizer: Any, update: int) -> None:
        """The optimizers have made so many steps, the last one by this one."""
        self._updates = update
        self.saves.updated(optimizer)
        self.evaluations.updated(optimizer)
        self.averages.updated(update)

    def skipped(self, optimizer: Any, updates: int, update: int) -> None:
        """An optimizer made updates that were not looked at, which were so many of all in the end."""
        self._updates = update
        for _ in range(updates):
            self.saves.updated(optimizer)

    def evaluated(self, module: Any) -> None:
        """A module that no other called is called without gradients."""
        self.evaluations.evaluated(module)
        self.averages.evaluated(module)

    def close(self) -> None:
        """Watch no more."""
        self.resumes.detach()
        self.evaluations.detach()
        self.saves.close()
