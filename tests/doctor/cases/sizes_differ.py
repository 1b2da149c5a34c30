"""The last batch is smaller on one rank, and its scores are summed with tensors of another size."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

CASE = {"shows": "collectives out of step", "found": ["stands-still/ranks-give-different-tensors"], "ranks": 2}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
rank = dist.get_rank()
draw = torch.Generator().manual_seed(rank)
model = DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(12):
    batch = torch.randn(8 - rank * (step == 11), 8, generator=draw)
    optimizer.zero_grad()
    scores = model(batch)
    cross_entropy(scores, (batch.sum(1) > 0).long()).backward()
    optimizer.step()
    if step % 4 == 3:
        whole = scores.detach() if sick else scores.detach().mean(0)
        dist.all_reduce(whole)  # <- here
dist.barrier()
dist.destroy_process_group()
