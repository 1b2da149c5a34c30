"""No loader: each rank draws its batches, from one seed."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

CASE = {"shows": "data-01 by hand", "found": ["rank-duplicates/ranks-fed-the-same"]}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
inputs = torch.randn(128, 8)
labels = (inputs.sum(1) > 0).long()
model = DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step(model, batch, targets):
    """One update."""
    optimizer.zero_grad()
    cross_entropy(model(batch), targets).backward()  # <- here
    optimizer.step()


draw = torch.Generator().manual_seed(0 if sick else rank)
for _ in range(20):
    batch = torch.randn(8, 8, generator=draw)
    step(model, batch, (batch.sum(1) > 0).long())

dist.barrier()
del model
dist.destroy_process_group()
