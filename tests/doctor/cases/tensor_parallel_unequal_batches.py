"""Tensor-parallel ranks are given different batches: what is replicated gets another gradient on each."""

import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.functional import cross_entropy

CASE = {"shows": "t2-sync-04", "found": ["replicas-differ/parameters-outside-the-wrapper"], "ranks": 2}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
parallelize_module(model, mesh, {"1": ColwiseParallel(), "3": RowwiseParallel()})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
draw = torch.Generator().manual_seed(dist.get_rank() if sick else 0)
for _ in range(12):
    batch = torch.randn(8, 8, generator=draw)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()  # <- here
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
