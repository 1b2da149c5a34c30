"""The optimizer is made from parameters that fully_shard puts others in the place of: it updates nothing."""

import sys

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy

CASE = {"shows": "fs-01", "found": ["untrained-parameters/optimizer-holds-others"], "ranks": 2}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
if not sick:
    fully_shard(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # <- here
if sick:
    fully_shard(model)
draw = torch.Generator().manual_seed(dist.get_rank())
for _ in range(12):
    batch = torch.randn(8, 8, generator=draw)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
