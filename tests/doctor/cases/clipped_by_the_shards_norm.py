"""Gradients are clipped by hand, each rank by the norm of its own shards."""

import sys

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy

CASE = {"shows": "fs-03", "found": ["per-rank-norm/each-rank-scales-by-its-own-factor"], "ranks": 2}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
for layer in (model[0], model[2]):
    fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
draw = torch.Generator().manual_seed(dist.get_rank())
for _ in range(12):
    batch = torch.randn(8, 8, generator=draw)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()  # <- here
    own = [parameter.grad.to_local() for parameter in model.parameters()]
    squares = sum(gradient.square().sum() for gradient in own)
    if not sick:
        dist.all_reduce(squares)
    for gradient in own:
        gradient.mul_(0.05 / (squares.sqrt() + 1e-6))
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
