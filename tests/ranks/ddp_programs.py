"""Scripts that train with DDP as users write them, watched from outside. Importable, so that each travels by name."""

from __future__ import annotations

import gc
import time
from types import ModuleType

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel as DDP

from labkit.record.batches import digest_tensors
from labkit.watch.ddp import watch_ddp
from labkit.watch.reductions import watch_reductions

MIB = 2**20


class Stack(nn.Module):
    """Tensors of given sizes, each used once, the last first in the backward pass; cheap whatever their size."""

    def __init__(self, tensors: int, mib: float) -> None:
        super().__init__()
        self.weights = nn.ParameterList(nn.Parameter(torch.zeros(round(mib * MIB / 4))) for _ in range(tensors))

    def forward(self, scale):
        total = scale
        for weight in self.weights:
            total = total + (weight * total.sum()).sum()
        return total


def count_buckets(context):
    """(collectives of the first step, of the second), by (number of tensors, MiB each, bucket_cap_mb)."""
    found = {}
    for tensors, mib, cap in context.task:
        module = DDP(Stack(tensors, mib), **({} if cap is None else {"bucket_cap_mb": cap}))
        watch = watch_ddp(module, context.probe)
        counts = []
        for _ in range(2):
            context.probe.begin_step()
            module(torch.ones(1)).backward()
            counts.append(context.probe.counted("all_reduce"))
            context.probe.end_step()
        watch.close()
        found[tensors, mib, cap] = counts[0], counts[1]
    return found


def _net(seed=0, width=16):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3))


def _train(context, ddp, optimizer, steps=5, passes=1, kept=False):
    draw = torch.Generator().manual_seed(context.rank)
    for _ in range(steps):
        for _ in range(passes):
            ddp(torch.randn(4, 8, generator=draw)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=not kept)


def same_bits(context):
    """Hashes of the weights after some steps, watched and not, with DDP's two ways of keeping gradients."""
    hashes = []
    for views, kept in ((False, False), (True, False), (True, True)):
        for watched in (False, True):
            ddp = DDP(_net(), gradient_as_bucket_view=views)
            optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
            watch = watch_ddp(ddp, context.probe, optimizer=optimizer) if watched else None
            _train(context, ddp, optimizer, kept=kept)
            if watch:
                watch.close()
            hashes.append((views, kept, digest_tensors(ddp.parameters())))
    return hashes


def a_users_script(context):
    """No probe in the loop: the watch makes the steps. `config` says where a communication hook is registered."""
    ddp = DDP(_net())
    if context.task == "before":
        ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    watch = watch_ddp(ddp, context.probe, optimizer=optimizer)
    if context.task == "after":
        ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    _train(context, ddp, optimizer, steps=3, passes=2)
    watch.close()
    _train(context, ddp, optimizer, steps=1)
    context.probe.digest("weights", ddp.parameters())
    return watch.seen


class Branches(nn.Module):
    """Uses one of two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(8, 3), nn.Linear(8, 3)
        self.turn = 0

    def forward(self, inputs):
        self.turn += 1
        return {"out": (self.one if self.turn % 2 else self.other)(inputs), "of": self.turn}


def leaves_a_layer_out(context):
    torch.manual_seed(0)
    ddp = DDP(Branches(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    watch = watch_ddp(ddp, context.probe, optimizer=optimizer)
    for _ in range(4):
        ddp(torch.randn(4, 8))["out"].sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        ddp(torch.randn(4, 8))
    watch.close()


def slow_in_backward(context):
    """`config` is (rank, seconds): its backward pass sleeps, once a step; returns how long each backward() took."""
    who, seconds = context.task
    ddp = DDP(_net(width=64), bucket_cap_mb=0.01)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    watch = watch_ddp(ddp, context.probe, optimizer=optimizer)
    if context.rank == who:
        ddp.module[2].weight.register_hook(lambda gradient: time.sleep(seconds))
    took = []
    for _ in range(6):
        loss = ddp(torch.randn(4, 8)).sum()
        started = time.perf_counter()
        loss.backward()
        took.append(time.perf_counter() - started)
        optimizer.step()
        optimizer.zero_grad()
    watch.close()
    return took


def survives_an_error_in_backward(context):
    """A backward pass that raises leaves the watch able to see the next."""
    ddp = DDP(_net())
    watch = watch_ddp(ddp, context.probe)
    output = ddp(torch.randn(4, 8)).sum()
    handle = ddp.module[0].weight.register_hook(lambda gradient: 1 / 0)
    try:
        if context.world_size == 1:
            output.backward()
    except ZeroDivisionError:
        pass
    handle.remove()
    fresh = DDP(_net())
    again = watch_ddp(fresh, context.probe)
    fresh(torch.randn(4, 8)).sum().backward()
    watch.close()
    again.close()


def reaches_its_group(context):
    """Whether what watches a module holds on to its process group: (watch_reductions, watch_ddp), then a list that does."""
    module, other = DDP(_net()), DDP(_net(1))
    hook, watch = watch_reductions(module, context.probe), watch_ddp(other, context.probe)
    for ddp in (module, other):
        _train(context, ddp, torch.optim.SGD(ddp.parameters(), lr=0.1), steps=2)
    watch.close()
    return _reaches_a_group(hook), _reaches_a_group(watch), _reaches_a_group([[module.process_group]])


def _reaches_a_group(start):
    seen, todo = set(), [start]
    while todo:
        one = todo.pop()
        if isinstance(one, dist.ProcessGroup):
            return True
        is_module = isinstance(one, ModuleType) or (isinstance(one, dict) and "__name__" in one)
        if id(one) in seen or is_module or isinstance(one, type):
            continue
        seen.add(id(one))
        todo += gc.get_referents(one)
    return False
