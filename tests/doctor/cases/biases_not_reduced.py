"""Gradients are averaged by hand, but those of the biases are left out: each rank trains its own."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

CASE = {"shows": "replicas unequal", "found": ["replicas-differ/some-gradients-not-reduced"], "ranks": 2}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
draw = torch.Generator().manual_seed(dist.get_rank())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    batch = torch.randn(8, 8, generator=draw)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()  # <- here
    for parameter in model.parameters():
        if parameter.ndim > 1 or not sick:
            dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)
            parameter.grad /= dist.get_world_size()
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
