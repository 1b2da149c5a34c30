"""No loader: each rank takes slices of the whole tensor."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

CASE = {"shows": "data-01 slices", "found": ["rank-duplicates/ranks-fed-the-same"]}

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


own = slice(None) if sick else slice(rank, None, world)
mine, targets = inputs[own], labels[own]
for _ in range(2):
    for at in range(0, len(mine), 8):
        step(model, mine[at : at + 8], targets[at : at + 8])

dist.barrier()
del model
dist.destroy_process_group()
