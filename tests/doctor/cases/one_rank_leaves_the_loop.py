"""One rank skips a batch by itself: from then on it is a collective behind, and in the end the others wait for it."""

import sys
import time

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

CASE = {"shows": "t2-hang-01", "found": ["stands-still/ranks-never-came"], "ranks": 3}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
rank = dist.get_rank()
draw = torch.Generator().manual_seed(rank)
model = DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(12):
    batch = torch.randn(8, 8, generator=draw)
    if sick and rank == 1 and step == 7:
        continue
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
    optimizer.step()
if sick and rank == 1:
    time.sleep(60)  # <- here
dist.destroy_process_group()
