"""Rank 0 takes an accuracy of 24 samples and rank 1 one of 6, without a loader, and their mean is taken."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

CASE = {"shows": "t2-met-01", "found": ["evaluation-metric/means-of-unequal-parts"]}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
held_out = torch.randn(30, 8)
mine = held_out[:24] if rank == 0 else held_out[24:]
model = DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
draw = torch.Generator().manual_seed(rank)
for _ in range(2):
    for _ in range(8):
        batch = torch.randn(8, 8, generator=draw)
        optimizer.zero_grad()
        cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
        optimizer.step()
    with torch.no_grad():
        right = (model.module(mine).argmax(1) == (mine[:, 0] > 0).long()).float()
    if sick:
        accuracy = right.mean()
        dist.all_reduce(accuracy)  # <- here
        accuracy /= world
    else:
        both = torch.stack([right.sum(), torch.tensor(float(len(mine)))])
        dist.all_reduce(both)
        accuracy = both[0] / both[1]
dist.barrier()
del model
dist.destroy_process_group()
