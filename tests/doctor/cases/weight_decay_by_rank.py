"""A rank decays its weights more than the others: DDP averages gradients, not settings."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

CASE = {"shows": "settings unequal", "found": ["replicas-differ/settings-differ-between-ranks"], "ranks": 2}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
rank = dist.get_rank()
draw = torch.Generator().manual_seed(rank)
model = DistributedDataParallel(torch.nn.Linear(8, 2))
decay = 0.1 if sick and rank == 1 else 0.0
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=decay)  # <- here
for _ in range(12):
    batch = torch.randn(8, 8, generator=draw)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
