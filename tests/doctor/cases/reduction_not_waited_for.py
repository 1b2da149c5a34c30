"""Gradients are all-reduced in the background, and nobody waits before the optimizer steps."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

CASE = {
    "shows": "async work not waited for",
    "found": ["gradient-average/reduction-not-waited-for"],
    "may": ["replicas-differ/weights-differ-and-ranks-talk"],
}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
draw = torch.Generator().manual_seed(dist.get_rank())
for _ in range(16):
    optimizer.zero_grad()
    batch = torch.randn(8, 8, generator=draw)
    (cross_entropy(model(batch), (batch.sum(1) > 0).long()) / dist.get_world_size()).backward()
    works = [dist.all_reduce(parameter.grad, async_op=True) for parameter in model.parameters()]  # <- here
    if not sick:
        for work in works:
            work.wait()
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
