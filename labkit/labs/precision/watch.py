"""Watch a training loop of this lab from outside: the batches that it takes and their loss, and what watches any loop.

The loop knows nothing of it, so a learner's loop is seen as the lab's own are. Nothing that is trained is touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn

from ...record.probe import Probe
from ...watch.precision import PrecisionWatch
from .loops import cross_entropy


class Watch:
    """Record each step of a loop.

    *Called on* one rank. For each update it copies the weights once and compares, so its times are not the loop's;
    speed is measured apart, without it.

    Args:
        probe: writes the steps.
        model: its outputs are the logits.
        optimizer: whose updates count.
        scaler: that the loop may use.
    """

    def __init__(self, probe: Probe, model: nn.Module, optimizer: torch.optim.Optimizer, scaler: Any) -> None:
        self.probe = probe
        self._targets: torch.Tensor | None = None
        self._watch = PrecisionWatch(
            model, optimizer, probe, scaler, check_casts=True, after_forward=self._tell_loss, whole_step=True
        )

    def batches(self, loader: Iterable, epoch: int, max_steps: int | None, device: torch.device) -> Iterator:
        """Yield (inputs, targets) on the device, each in a step of its own."""
        for inputs, targets, _ in self.probe.batches(loader, epoch=epoch, ids_at=2, max_steps=max_steps):
            self.probe.scalar("batch_samples", len(targets))
            self._targets = targets.to(device)
            self._watch.begin_step()
            yield inputs.to(device), self._targets
            self._watch.end_step()

    def close(self) -> None:
        """Leave how often gradients of each power of two came to the optimizer."""
        self._watch.close()

    @torch.no_grad()
    def _tell_loss(self, logits: torch.Tensor) -> None:
        if self._targets is not None:
            self.probe.scalar("loss_local", cross_entropy(logits, self._targets).item())
