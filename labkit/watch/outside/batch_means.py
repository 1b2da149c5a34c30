"""Numbers that a script takes of each batch that it evaluates: is the plain mean of them what it keeps?

A mean of means of batches is the mean over all samples only where the batches are equally large. It is noted where a number
that the script reduces, or holds in a variable when it trains on, is to the last digits the plain mean.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...record.probe import Probe
from .patches import Patches, called_from, is_library

BATCHES, SITES = 4096, 16
"""Batches of an evaluation, and lines that take numbers of them, at most."""

FRAMES, NAMES = 12, 200
"""Frames, and names of a frame, that are looked at, at most."""

SAME = 1e-6
"""Relative difference up to which a number is the mean: a tensor holds seven digits."""


class BatchMeans:
    """What `.item()` gives in evaluations. *Called on* each rank."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._rows, self._pass = 0, 0
        self._asked: Callable[[bool], None] = lambda on: None
        self.rows = 0
        """Samples that models were given without gradients since the last pass of training."""
        self._of: dict[str, list[tuple[int, int, float]]] = {}
        self._told: set[str] = set()

    def attach(self, patches: Patches) -> None:
        """Watch from now on."""
        import torch

        note = patches.noting(self._took)

        def around(original):
            def item(tensor):
                given = original(tensor)
                if self._rows and type(given) is float:
                    note(given)
                return given

            return item

        self._asked = patches.wrap_at_times(torch.Tensor, "item", around)

    def evaluates(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A module that no other called is called without gradients."""
        import torch

        given = next((one for one in (*args, *kwargs.values()) if isinstance(one, torch.Tensor)), None)
        self._rows = int(given.shape[0]) if given is not None and given.ndim > 1 else 0
        self.rows += self._rows
        self._pass += 1
        if self._rows:
            self._asked(True)

    def trains(self) -> None:
        """A pass of training begins: the evaluation is over."""
        if not self._pass:
            return
        if any(_unequal(taken) for taken in self._of.values()):
            self.kept(_held())
        self._of.clear()
        self._rows = self._pass = self.rows = 0
        self._asked(False)  # an optimizer asks for each parameter's step by it

    def kept(self, numbers: Iterable[float]) -> None:
        """Numbers that a script keeps, or reduces, of an evaluation: whether one is the plain mean of what it took."""
        means = {site: _means(taken) for site, taken in self._of.items() if _unequal(taken) and site not in self._told}
        for number in numbers if means else ():
            for site, (plain, weighted) in means.items():
                if site in self._told or not math.isclose(number, plain, rel_tol=SAME):
                    continue
                self._told.add(site)
                rows = [rows for _, rows, _ in self._of[site]]
                sizes = {"batches": len(rows), "fewest": min(rows), "most": max(rows), "rows": sum(rows)}
                self._probe.event("batch_means", where=site, plain=plain, weighted=weighted, **sizes)

    def _took(self, value: float) -> None:
        if is_library(sys._getframe(3).f_code.co_filename):
            return
        site = called_from()
        if site not in self._of and len(self._of) >= SITES:
            return
        taken = self._of.setdefault(site, [])
        if len(taken) < BATCHES and (not taken or taken[-1][0] != self._pass):
            taken.append((self._pass, self._rows, value))


def _unequal(taken: list[tuple[int, int, float]]) -> bool:
    return len(taken) > 1 and len({rows for _, rows, _ in taken}) > 1


def _means(taken: list[tuple[int, int, float]]) -> tuple[float, float]:
    plain = sum(value for _, _, value in taken) / len(taken)
    return plain, sum(rows * value for _, rows, value in taken) / sum(rows for _, rows, _ in taken)


def _held() -> Iterator[float]:
    """Numbers in the variables of the script's frames, and the last ones of lists."""
    frame: Any = sys._getframe(1)
    frames = 0
    while frame is not None and frames < FRAMES:
        if not is_library(frame.f_code.co_filename):
            frames += 1
            for value in list(frame.f_locals.values())[:NAMES]:
                value = value[-1] if type(value) is list and value else value
                if type(value) is float:
                    yield value
        frame = frame.f_back
