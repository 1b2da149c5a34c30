"""Gradients are averaged by hand, and every rank began with weights of its own: what is between them never goes away."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

CASE = {"shows": "replicas unequal", "found": ["replicas-differ/ranks-start-apart"], "ranks": 2}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
if not sick:
    for tensor in model.state_dict().values():
        dist.broadcast(tensor, src=0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    batch = torch.randn(8, 8)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()  # <- here
    flat = torch.cat([parameter.grad.reshape(-1) for parameter in model.parameters()])
    dist.all_reduce(flat)
    for parameter, part in zip(model.parameters(), flat.split([p.numel() for p in model.parameters()]), strict=True):
        parameter.grad.copy_(part.view_as(parameter) / world)
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
