"""What a step changes: weights that stay as they were although a gradient came, and those that no step has moved yet."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from ..record.probe import Probe
from .memory import local


class Changes:
    """Compares parameters before a step with those after it. *Called on* a rank; no collective.

    Written by `end`, if a gradient came in between: the counts weights_unchanged, updates_lost, weights_nonfinite; from the
    start, also weights_with_gradient and weights_as_first. It copies the weights once a step, and waits for a GPU.

    Args:
        parameters: of sharded ones, the shards of this rank.
        probe: writes into the step that is open.
        from_the_start: also keep the first values, and compare with them.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], probe: Probe, *, from_the_start: bool = False) -> None:
        self._parameters, self._probe, self._from_the_start = parameters, probe, from_the_start
        self._before: list[torch.Tensor] = []
        self._first: list[torch.Tensor] = []
        self._pushed: dict[int, torch.Tensor] = {}
        self._ever_pushed: dict[int, torch.Tensor] = {}

    @torch.no_grad()
    def begin(self) -> None:
        """Keep the weights as they are before the step."""
        self._before = [local(p.detach()).clone() for p in self._parameters]
        self._pushed = {}
        if self._from_the_start and not self._first:
            self._first = self._before

    @torch.no_grad()
    def push(self) -> None:
        """Keep which elements have a gradient other than 0, as an optimizer begins its update."""
        self._pushed = {at: local(p.grad) != 0 for at, p in enumerate(self._parameters) if p.grad is not None}
        if self._from_the_start:
            for at, pushed in self._pushed.items():
                earlier = self._ever_pushed.get(at)
                self._ever_pushed[at] = pushed if earlier is None else pushed | earlier

    @torch.no_grad()
    def end(self) -> bool:
        """Compare, and count. Whether there was an update to compare."""
        if not self._pushed:
            return False
        unchanged = lost = nonfinite = 0
        for at, pushed in self._pushed.items():
            after = local(self._parameters[at].detach())
            same = after == self._before[at]
            unchanged += int(same.sum())
            lost += int((same & pushed).sum())
            nonfinite += int((~torch.isfinite(after)).sum())
        self._probe.count("weights_unchanged", unchanged)
        self._probe.count("updates_lost", lost)
        self._probe.count("weights_nonfinite", nonfinite)
        if self._from_the_start:
            self._count_from_the_start()
        self._before, self._pushed = [], {}
        return True

    def _count_from_the_start(self) -> None:
        still = 0
        for at, pushed in self._ever_pushed.items():
            still += int(((local(self._parameters[at].detach()) == self._first[at]) & pushed).sum())
        self._probe.count("weights_with_gradient", sum(int(pushed.sum()) for pushed in self._ever_pushed.values()))
        self._probe.count("weights_as_first", still)
