"""Watch a training in 16 bits from outside: its optimizer, its scaler, and in which format its forward passes end.

The loop knows nothing of it, so anyone's loop is seen alike. Nothing that is trained is touched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import Optimizer

from ..record.probe import Probe
from .optimizer import OptimizerWatch
from .passes import PassHooks, PassWatch, tensors_of
from .scaler import ScalerWatch

CHECK_FIRST, CHECK_EVERY = 5, 10
"""Whether forward passes see the new weights is checked after each of the first updates, then after every tenth."""


class PrecisionWatch:
    """What watches one model and its optimizer. See `watch_precision`.

    Args:
        after_forward: called with the outputs of each forward pass of the program's own.
        whole_step: see `OptimizerWatch`.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        probe: Probe,
        scaler: Any = None,
        *,
        check_casts: bool = False,
        after_forward: Callable[[Any], None] = lambda outputs: None,
        whole_step: bool = False,
    ) -> None:
        self._model, self._probe, self._after_forward = model, probe, after_forward
        self._inputs: tuple = ()
        self._looking, self._updates = False, 0
        after = self._after_update if check_casts else lambda: None
        self._optimizer = OptimizerWatch(optimizer, probe, after, whole_step=whole_step)
        self._others: list[Any] = [PassWatch(model, PassHooks(forward_ends=self._forward_ends))]
        if scaler is not None:
            self._others.append(ScalerWatch(scaler, probe))

    def begin_step(self) -> None:
        """Before whatever the loop does in a step; see `OptimizerWatch`."""
        self._optimizer.begin_step()

    def end_step(self) -> None:
        """After whatever the loop did in a step; see `OptimizerWatch`."""
        self._optimizer.end_step()

    def close(self) -> None:
        """Stop, and leave how often gradients of each power of two came to the optimizer."""
        self._optimizer.close()
        for watch in self._others:
            watch.close()

    def _forward_ends(self, inputs: tuple, outputs: Any) -> None:
        if self._looking or not self._probe.in_step:
            return
        self._inputs = inputs  # as the loop made them, perhaps in another precision
        self._after_forward(outputs)
        first = next(iter(tensors_of(outputs)), None)
        if first is not None:
            self._probe.count(f"forwards_{str(first.dtype).removeprefix('torch.')}")

    def _after_update(self) -> None:
        if self._updates < CHECK_FIRST or self._updates % CHECK_EVERY == 0:
            self._check_casts()
        self._updates += 1

    def _check_casts(self) -> None:
        """Whether a forward pass, here and now, gives what the new weights give.

        Where autocast is open it keeps the casts of weights it has made, and would use them again; the same pass without
        that store casts anew. Where it is closed, the store is empty.
        """
        device = next(self._model.parameters()).device.type
        self._probe.count("forward_checks")
        if not torch.is_autocast_enabled(device):
            return
        self._probe.count("autocast_open_at_update")
        generators = [torch.cuda.current_device()] if device == "cuda" else []
        self._looking = True
        try:
            with torch.random.fork_rng(generators):  # the same random numbers for both, and none that the loop would draw
                kept = self._outputs()
            with torch.random.fork_rng(generators):
                with torch.autocast(device, torch.get_autocast_dtype(device), cache_enabled=False):
                    anew = self._outputs()
        finally:
            self._looking = False
        if not torch.equal(kept, anew) and bool(torch.isfinite(anew).all()):
            self._probe.count("forward_stale")

    def _outputs(self) -> torch.Tensor:
        with torch.enable_grad():  # else casts without a gradient would be stored
            return next(iter(tensors_of(self._model(*self._inputs))))


def watch_precision(
    model: nn.Module, optimizer: Optimizer, probe: Probe, *, scaler: Any = None, check_casts: bool = False
) -> PrecisionWatch:
    """Begin to record what gradients come to an optimizer, what its steps change, and what a scaler does.

    *Called on* a rank, before the first step; no collective. `close` the result before the probe. Written into each
    step, beside what `watch_optimizer` and `watch_scaler` write: the counts forwards_float32, forwards_bfloat16, … of
    forward passes by the format of their outputs. A step that is watched takes longer than one that is not.

    Args:
        model: its first output tells the format.
        optimizer: whose updates count.
        probe: this rank's.
        scaler: a `torch.amp.GradScaler`, where the loop has one.
        check_casts: also run the model twice more after some updates, within whatever autocast is open then, to see
            whether it uses casts of old weights (counts forward_checks, autocast_open_at_update, forward_stale). Not for
            a model that changes when it runs, such as one with batch statistics.
    """
    return PrecisionWatch(model, optimizer, probe, scaler, check_casts=check_casts)
