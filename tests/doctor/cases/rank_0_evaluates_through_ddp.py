"""Rank 0 alone evaluates the wrapped model, which has buffers: DDP sends them in each forward pass, to nobody."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

CASE = {"shows": "rank 0 evaluates", "found": ["stands-still/ranks-in-different-collectives"], "ranks": 2}


def evaluate(model):
    model.eval()
    with torch.no_grad():
        for _ in range(3):
            model(torch.randn(8, 8))  # <- here
    model.train()


sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
draw = torch.Generator().manual_seed(dist.get_rank())
model = DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(12):
    batch = torch.randn(8, 8, generator=draw)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
    optimizer.step()
    if step % 4 == 3 and dist.get_rank() == 0:
        evaluate(model if sick else model.module)
dist.barrier()
dist.destroy_process_group()
