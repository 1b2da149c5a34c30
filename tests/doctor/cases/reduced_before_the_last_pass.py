"""Gradients of two micro-batches are averaged by hand, but before the second backward pass."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

CASE = {"shows": "reduced too early", "found": ["gradient-average/reduced-before-the-last-pass"]}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
draw = torch.Generator().manual_seed(dist.get_rank())
for _ in range(16):
    optimizer.zero_grad()
    for micro in range(2):
        batch = torch.randn(8, 8, generator=draw)
        loss = cross_entropy(model(batch), (batch.sum(1) > 0).long()) / 2
        if micro == 1 and sick:
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)
                parameter.grad /= dist.get_world_size()
        loss.backward()  # <- here
    if not sick:
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)
            parameter.grad /= dist.get_world_size()
    optimizer.step()
dist.destroy_process_group()
