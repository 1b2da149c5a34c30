"""Scripts as careful people write them, each recording what labkit asks for: in none of them is anything to be found."""

from __future__ import annotations

import time
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler, TensorDataset

from labkit.watch.ddp import watch_ddp

SAMPLES, WIDTH, BATCH, EPOCHS = 480, 20, 16, 3


class Prepared(Dataset):
    """Samples that cost some waiting each, as a decoder or a disk does."""

    def __init__(self, data: TensorDataset, wait_s: float) -> None:
        self.data, self.wait_s = data, wait_s

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int):
        time.sleep(self.wait_s)
        return self.data[index]


def _data(samples: int = SAMPLES) -> TensorDataset:
    draw = torch.Generator().manual_seed(7)
    inputs = torch.randn(samples, WIDTH, generator=draw)
    return TensorDataset(inputs, (inputs.sum(1) > 0).long())


def _loader(context, data, **how):
    """(loader, its sampler): each rank its own share, in a new order each epoch."""
    sampler = DistributedSampler(data, context.world_size, context.rank, shuffle=True, seed=3)
    return DataLoader(data, batch_size=BATCH, sampler=sampler, **how), sampler


def _net(hidden: int = 32) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(WIDTH, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2))


def _begin(context, model: nn.Module, data) -> None:
    context.probe.declare(dataset_size=len(data), batch_size=BATCH)
    context.probe.digest("initial_weights", model.parameters())


def _update(context, model, optimizer, inputs, targets) -> None:
    loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    context.probe.scalar("loss_local", loss.item())
    context.probe.scalar("batch_samples", len(inputs))


def _ddp(context, model: nn.Module) -> nn.Module:
    return DDP(model) if dist.is_initialized() else model


def plain_ddp(context) -> None:
    """DistributedSampler, set_epoch, DDP."""
    data, model = _data(), _net()
    _begin(context, model, data)
    ddp = _ddp(context, model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    loader, sampler = _loader(context, data)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for inputs, targets in context.probe.batches(loader, epoch=epoch):
            _update(context, ddp, optimizer, inputs, targets)
    context.probe.digest("weights", model.parameters())


def watched_ddp(context) -> None:
    """The same, watched, with a validation pass of its own samples."""
    data, model = _data(), _net(hidden=256)
    training, held_out = torch.utils.data.random_split(data, [400, 80], generator=torch.Generator().manual_seed(1))
    _begin(context, model, training)
    ddp = _ddp(context, model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    watch = watch_ddp(ddp, context.probe, optimizer=optimizer) if isinstance(ddp, DDP) else None
    loader, sampler = _loader(context, training)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for inputs, targets in context.probe.batches(loader, epoch=epoch):
            _update(context, ddp, optimizer, inputs, targets)
        with torch.no_grad():
            for inputs, _ in DataLoader(held_out, batch_size=40):
                context.probe.seen("validation", epoch, inputs)
                model(inputs)
    if watch is not None:
        watch.close()
    context.probe.digest("weights", model.parameters())


def accumulating(context, micro: int = 4) -> None:
    """Micro-batches, no_sync around forward and backward of all but the last, clipped by one norm."""
    data, model = _data(), _net(hidden=128)
    _begin(context, model, data)
    ddp = _ddp(context, model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    watch = watch_ddp(ddp, context.probe, optimizer=optimizer) if isinstance(ddp, DDP) else None
    loader, sampler = _loader(context, data)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for inputs, targets in context.probe.batches(loader, epoch=epoch):
            parts = list(zip(inputs.chunk(micro), targets.chunk(micro), strict=True))
            total = 0.0
            for number, (some, wanted) in enumerate(parts, start=1):
                with ddp.no_sync() if isinstance(ddp, DDP) and number < len(parts) else nullcontext():
                    loss = nn.functional.cross_entropy(ddp(some), wanted) / len(parts)
                    loss.backward()
                total += loss.item()
            context.probe.scalar("grad_norm", float(nn.utils.clip_grad_norm_(ddp.parameters(), 1e3)))
            optimizer.step()
            optimizer.zero_grad()
            context.probe.scalar("loss_local", total)
    if watch is not None:
        watch.close()
    context.probe.digest("weights", model.parameters())


def fed_by_workers(context) -> None:
    """Workers prepare samples ahead, on a model that computes longer than they need."""
    data, model = Prepared(_data(160), 0.0005), _net(hidden=64)
    _begin(context, model, data)
    ddp = _ddp(context, model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    loader, sampler = _loader(context, data, num_workers=2, persistent_workers=True, multiprocessing_context="fork")
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for inputs, targets in context.probe.batches(loader, epoch=epoch):
            with context.probe.span("train"):
                _update(context, ddp, optimizer, inputs, targets)
                time.sleep(0.05)  # a device that computes, whatever the cores are doing
    context.probe.digest("weights", model.parameters())


def averaged_by_hand(context) -> None:
    """Each gradient's mean by an all-reduce of the script's own, timed by it."""
    data, model = _data(), _net()
    _begin(context, model, data)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loader, sampler = _loader(context, data)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for inputs, targets in context.probe.batches(loader, epoch=epoch):
            loss = nn.functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            with context.probe.span("all_reduce", "comm"):
                for parameter in model.parameters():
                    dist.all_reduce(parameter.grad)
                    parameter.grad /= context.world_size
            optimizer.step()
            context.probe.scalar("loss_local", loss.item())
    context.probe.digest("weights", model.parameters())


PROGRAMS = {
    program.__name__.replace("_", "-"): (program, ranks)
    for program, ranks in (
        (plain_ddp, (1, 2, 3, 4)),
        (watched_ddp, (1, 2, 4)),
        (accumulating, (1, 2, 3)),
        (fed_by_workers, (1, 2)),
        (averaged_by_hand, (2, 3, 4)),
    )
}
"""By name: the program, and on how many ranks it is tried."""
