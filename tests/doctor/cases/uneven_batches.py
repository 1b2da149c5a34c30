"""One rank has a batch more than the other, and waits in the last backward pass for a rank that has gone."""

import contextlib
import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

CASE = {"shows": "hang-01", "found": ["stands-still/ranks-left-the-others-waiting"], "ranks": 2}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
rank = dist.get_rank()
draw = torch.Generator().manual_seed(rank)
model = DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with contextlib.nullcontext() if sick else model.join():
    for _ in range(12 + rank):
        batch = torch.randn(8, 8, generator=draw)
        optimizer.zero_grad()
        cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()  # <- here
        optimizer.step()
if not sick:
    dist.barrier()
    dist.destroy_process_group()
