"""A barrier was left in the loop."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

CASE = {"shows": "gs-03", "found": ["barriers/barrier-in-every-step"], "ranks": 2}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
draw = torch.Generator().manual_seed(dist.get_rank())
model = DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _epoch in range(2):
    for _ in range(8):
        batch = torch.randn(8, 8, generator=draw)
        optimizer.zero_grad()
        cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
        if sick:
            dist.barrier()  # <- here
        optimizer.step()
    dist.barrier()
dist.destroy_process_group()
