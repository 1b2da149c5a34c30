"""What ranks on several hosts run in these tests. Importable, so that each travels by name."""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def meets_on_a_host(context):
    """An all-reduce of `config` floats: what the wire carried, where this rank sat, and the sum."""
    mine = torch.full((context.task,), float(context.rank + 1))
    dist.all_reduce(torch.zeros(context.task))  # connections are made, buffers grown
    dist.barrier()
    before = context.wire_bytes()
    start = time.monotonic()
    dist.all_reduce(mine)
    seconds = time.monotonic() - start
    dist.barrier()
    after = context.wire_bytes()
    sent = None if before is None else after[1] - before[1]
    addresses = Path("/proc/self/net/fib_trie").read_text() if before is not None else ""
    return {
        "host": context.host,
        "local_rank": context.local_rank,
        "sent": sent,
        "sum": mine[-1].item(),
        "equal": bool((mine == mine[0]).all()),
        "seconds": seconds,
        "own_address": f"10.77.0.{int(context.host.rsplit('-', 1)[1]) + 1}" in addresses,
        "uid": os.getuid(),
        "source": context.network.source,
    }


def tries_every_collective(context):
    """Each collective once, its result as plain numbers; `config` says nothing."""
    rank, world = context.rank, context.world_size
    own = torch.arange(4.0) + 10 * rank
    found = {}

    def keep(name, *tensors):
        found[name] = [tensor.tolist() for tensor in tensors]

    tensor = own.clone()
    dist.all_reduce(tensor)
    keep("all_reduce", tensor)
    tensor = own.clone()
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX, async_op=True).wait()
    keep("all_reduce max", tensor)
    tensor = own.clone()
    keep("all_reduce future", dist.all_reduce(tensor, async_op=True).get_future().wait()[0])
    tensor = own.clone()
    dist.broadcast(tensor, src=world - 1)
    keep("broadcast", tensor)
    tensor = own.clone()
    dist.reduce(tensor, dst=0)
    keep("reduce", *([tensor] if rank == 0 else []))
    parts = [torch.zeros(4) for _ in range(world)]
    dist.all_gather(parts, own)
    keep("all_gather", *parts)
    whole = torch.zeros(4 * world)
    dist.all_gather_into_tensor(whole, own)
    keep("all_gather_into_tensor", whole)
    part = torch.zeros(4)
    dist.reduce_scatter_tensor(part, torch.arange(4.0 * world) * (rank + 1))
    keep("reduce_scatter_tensor", part)
    dist.reduce_scatter(part, [own + peer for peer in range(world)])
    keep("reduce_scatter", part)
    whole = torch.zeros(2 * world)
    dist.all_to_all_single(whole, torch.arange(2.0 * world) + 100 * rank)
    keep("all_to_all_single", whole)
    parts = [torch.zeros(1) for _ in range(world)] if rank == 0 else None
    dist.gather(own[:1].clone(), parts, dst=0)
    keep("gather", *(parts or []))
    part = torch.zeros(1)
    dist.scatter(part, [torch.tensor([float(peer)]) for peer in range(world)] if rank == 0 else None, src=0)
    keep("scatter", part)
    peer = (rank + 1) % world
    sending = dist.isend(own, dst=peer)
    tensor = torch.zeros(4)
    dist.recv(tensor, src=(rank - 1) % world)
    sending.wait()
    keep("send and recv", tensor)
    if rank == 0:
        senders = [dist.recv(torch.zeros(1)) for _ in range(world - 1)]
        found["recv from any"] = sorted(senders)
    else:
        dist.send(torch.zeros(1), dst=0)
    objects = [None] * world
    dist.all_gather_object(objects, {"rank": rank})
    found["objects"] = objects
    pair = dist.new_group([0, world - 1])
    tensor = own.clone()
    if rank in (0, world - 1):
        dist.all_reduce(tensor, group=pair)
    keep("subgroup", tensor)
    dist.barrier()
    return found


def trains_in_step(context):
    """Two steps of DDP over a comm hook's futures; the hash of the weights."""
    torch.manual_seed(0)
    model = DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(8, 300), torch.nn.ReLU(), torch.nn.Linear(300, 2)), bucket_cap_mb=0.001
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(2):
        context.probe.begin_step()
        torch.manual_seed(100 * step + context.rank)
        optimizer.zero_grad()
        model(torch.randn(16, 8)).square().mean().backward()
        optimizer.step()
        context.probe.end_step()
    return context.probe.digest("weights", model.module.parameters())


def waits_for_a_rank_that_raises(context):
    """Rank 1 raises while the others wait for it in an all-reduce."""
    if context.rank == 1:
        raise ValueError("no more of this")
    dist.all_reduce(torch.zeros(8))


def reduces_within_its_host(context):
    """An all-reduce of `config` floats among the ranks of each host; the seconds that it took."""
    groups = [dist.new_group([2 * host, 2 * host + 1]) for host in range(context.world_size // 2)]
    start = time.monotonic()
    dist.all_reduce(torch.ones(context.task), group=groups[context.rank // 2])
    return time.monotonic() - start


def sleeps(context):
    """Does nothing for longer than any test waits."""
    time.sleep(100)


def reduces_in_steps(context):
    """`config` steps of an all-reduce each."""
    for _ in range(context.task):
        context.probe.begin_step()
        dist.all_reduce(torch.ones(8))
        context.probe.end_step()
    return context.host
