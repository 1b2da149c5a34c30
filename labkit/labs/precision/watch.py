"""Watch a training loop from outside, through hooks: what the optimizer gets, what it changes, what the scaler does.

The loop knows nothing of it, so a learner's loop is seen as the lab's own are. Nothing that is trained is touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import nn

from ...record.probe import Probe
from ...record.vocabulary import LOWEST_EXPONENT
from .loops import cross_entropy

HIGHEST_EXPONENT = 130
"""Gradients are sorted by powers of two up to this one; fp32's own range lies within."""

CHECK_FIRST, CHECK_EVERY = 5, 10
"""Whether forward passes see the new weights is checked after each of the first updates, then after every tenth."""


class WatchedScaler(torch.amp.GradScaler):  # pyright: ignore[reportPrivateImportUsage]
    """A GradScaler that tells its watch when it is asked for a step."""

    watch: Watch

    def step(self, optimizer, *args, **kwargs):
        self.watch.scaler_asked(self.get_scale())
        return super().step(optimizer, *args, **kwargs)


class Watch:
    """Record each step of a loop.

    *Called on* one rank. For each update it copies the weights once and compares, so its times are not the loop's;
    speed is measured apart, without it.

    Args:
        probe: writes the steps.
        model: its outputs are the logits.
        optimizer: whose updates count.
    """

    def __init__(self, probe: Probe, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.probe, self.model = probe, model
        self.updates = 0
        self.exponents = np.zeros(HIGHEST_EXPONENT - LOWEST_EXPONENT + 1, dtype=np.int64)
        self._inputs = self._targets = self._before = None
        self._parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self._looking = False
        model.register_forward_hook(self._after_forward)
        optimizer.register_step_pre_hook(self._before_update)
        optimizer.register_step_post_hook(self._after_update)

    def batches(self, loader: Iterable, epoch: int, max_steps: int | None, device: torch.device) -> Iterator:
        """Yield (inputs, targets) on the device, each in a step of its own."""
        for inputs, targets, _ in self.probe.batches(loader, epoch=epoch, ids_at=2, max_steps=max_steps):
            self.probe.scalar("batch_samples", len(targets))
            self._inputs, self._targets = inputs.to(device), targets.to(device)
            yield self._inputs, self._targets

    def scaler_asked(self, scale: float) -> None:
        """The scaler was asked for a step at this scale; whether it takes one, the optimizer's hook will see."""
        self.probe.count("scaler_steps")
        self.probe.scalar("scale", scale)

    def close(self) -> None:
        """Leave how often gradients of each power of two came to the optimizer."""
        self.probe.array("gradient_exponents", self.exponents)

    def _after_forward(self, _model, inputs, logits) -> None:
        if self._looking or self._targets is None or not torch.is_grad_enabled():
            return
        self._inputs = inputs[0]  # as the loop made it, perhaps in another precision
        with torch.no_grad():
            self.probe.scalar("loss_local", cross_entropy(logits, self._targets).item())
        self.probe.count(f"forwards_{str(logits.dtype).removeprefix('torch.')}")

    @torch.no_grad()
    def _before_update(self, *_) -> None:
        gradients = [p.grad.detach() for p in self._parameters if p.grad is not None]
        self._before = [p.detach().clone() for p in self._parameters if p.grad is not None]
        flat = torch.cat([g.reshape(-1).float() for g in gradients])
        finite = flat[torch.isfinite(flat)]
        self.probe.count("updates")
        self.probe.count("gradient_elements", flat.numel())
        self.probe.count("gradient_zeros", int((flat == 0).sum()))
        self.probe.count("gradient_nonfinite", flat.numel() - finite.numel())
        self.probe.scalar("grad_norm", flat.double().norm().item())
        powers = torch.frexp(finite[finite != 0]).exponent.long() - 1  # frexp's fractions begin at a half
        counts = torch.bincount(powers - LOWEST_EXPONENT, minlength=len(self.exponents))
        self.exponents += counts.cpu().numpy()

    @torch.no_grad()
    def _after_update(self, optimizer, *_) -> None:
        moved = [p for p in self._parameters if p.grad is not None]
        same = [after == before for after, before in zip(moved, self._before or [], strict=True)]
        lost = sum(int((s & (p.grad != 0)).sum()) for s, p in zip(same, moved, strict=True) if p.grad is not None)
        self.probe.count("weights_unchanged", sum(int(s.sum()) for s in same))
        self.probe.count("updates_lost", lost)
        self.probe.count("weights_nonfinite", sum(int((~torch.isfinite(p)).sum()) for p in moved))
        if self.updates == 0:
            self._memory(optimizer)
        if self.updates < CHECK_FIRST or self.updates % CHECK_EVERY == 0:
            self._check_forward()
        self.updates += 1
        self._before = None

    def _memory(self, optimizer: torch.optim.Optimizer) -> None:
        state = [t for s in optimizer.state.values() for t in s.values() if torch.is_tensor(t)]
        self.probe.event(
            "memory",
            instant="first_update",
            parameters=_bytes(self._parameters),
            gradients=_bytes(p.grad for p in self._parameters if p.grad is not None),
            optimizer_state=_bytes(state),
        )

    def _check_forward(self) -> None:
        """Whether a forward pass, here and now, gives what the new weights give.

        Where autocast is open it keeps the casts of weights it has made, and would use them again; the same pass without
        that store casts anew. Where it is closed, the store is empty.
        """
        device = self._parameters[0].device.type
        self.probe.count("forward_checks")
        if not torch.is_autocast_enabled(device):
            return
        self.probe.count("autocast_open_at_update")
        self._looking = True
        try:
            with torch.enable_grad():  # else casts without a gradient would be stored
                kept = self.model(self._inputs)
            with torch.autocast(device, torch.get_autocast_dtype(device), cache_enabled=False):
                anew = self.model(self._inputs)
        finally:
            self._looking = False
        if not torch.equal(kept, anew) and bool(torch.isfinite(anew).all()):
            self.probe.count("forward_stale")


def _bytes(tensors: Iterable[torch.Tensor]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)
