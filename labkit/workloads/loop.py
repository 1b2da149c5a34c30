"""One plain training loop, the same for every lab and every reference: what differs is the loader that it is given.

Shapes: inputs [B, ...], targets [B], ids [B]; logits [B, C] for C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ..record.probe import Probe
from ..watch.reductions import watch_reductions


def train(
    model: nn.Module,
    loader_of_epoch: Callable[[int], Iterable[Sequence[torch.Tensor]]],
    probe: Probe,
    *,
    epochs: int,
    lr: float,
    momentum: float = 0.9,
    max_steps: int | None = None,
    device: torch.device | str = "cpu",
    after_epoch: Callable[[int], None] | None = None,
    around_epoch: Callable[[], AbstractContextManager] = nullcontext,
) -> None:
    """Train with SGD and cross-entropy (the mean over a batch), recording each step.

    *Called on* every rank. Collectives: those of the model that is given, if it is distributed.

    Args:
        model: plain, or wrapped in DistributedDataParallel.
        loader_of_epoch: gives the batches of an epoch: (inputs [B, …], targets [B], ids [B]).
        epochs, lr, momentum: as usual.
        max_steps: cap over all epochs.
        after_epoch: called at the end of each epoch, outside the steps.
        around_epoch: makes a context that is open while the batches of an epoch are trained on.
    """
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
    for epoch in range(epochs):
        if max_steps is not None and probe.step + 1 >= max_steps:
            break  # a loader of workers would start them for nothing
        loader = loader_of_epoch(epoch)
        with around_epoch():
            for inputs, targets, _ in probe.batches(loader, epoch=epoch, ids_at=2, max_steps=max_steps):
                with probe.span("forward"):
                    loss = nn.functional.cross_entropy(model(inputs.to(device)), targets.to(device))
                with probe.span("backward"):
                    optimizer.zero_grad()
                    loss.backward()
                with probe.span("optimizer"):
                    optimizer.step()
                probe.scalar("loss_local", loss.item())
                probe.scalar("batch_samples", len(targets))
        if after_epoch is not None:
            after_epoch(epoch)


def wrap_ddp(model: nn.Module, probe: Probe, device: torch.device) -> DistributedDataParallel:
    """Wrap in DistributedDataParallel, with each all-reduce timed from its start to its completion.

    *Called on* every rank. The weights come out as without the watch, to the bit.
    """
    wrapped = DistributedDataParallel(model, device_ids=[device] if device.type == "cuda" else None)
    watch_reductions(wrapped, probe)
    return wrapped


def wrap_ddp_in_one_order(model: nn.Module, probe: Probe, device: torch.device) -> DistributedDataParallel:
    """The same, with each gradient summed by itself, so that a run that was started again sums as one that was not.

    DDP lays its buckets out anew after the first step of each start. On three ranks or more the order in which a bucket is
    summed depends on where a gradient lies in it, so the first step of a start differs in the last bits.
    """
    wrapped = DistributedDataParallel(model, device_ids=[device] if device.type == "cuda" else None)
    watch_reductions(wrapped, probe, one_by_one=True)
    return wrapped


def keep_weights(model: nn.Module, probe: Probe) -> None:
    """Record the final weights: their hash (equal hashes are equal bits) and, for gaps, their values.

    *Called on* every rank; only rank 0's values are read back.
    """
    plain = model.module if isinstance(model, DistributedDataParallel) else model
    probe.digest("weights", plain.parameters())
    flat = torch.cat([parameter.detach().reshape(-1).double() for parameter in plain.parameters()])
    probe.array("weights", flat.cpu().numpy().astype(np.float64))
