"""No loader: each rank goes through all rows, in an order of its own."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

CASE = {"shows": "data-08 by hand", "found": ["rank-duplicates/ranks-fed-the-same-rows"]}

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


draw = torch.Generator().manual_seed(rank if sick else 0)
for _ in range(2):
    order = torch.randperm(len(inputs), generator=draw)
    mine = order if sick else order[rank::world]
    for at in range(0, len(mine), 8):
        step(model, inputs[mine[at : at + 8]], labels[mine[at : at + 8]])

dist.barrier()
del model
dist.destroy_process_group()
