"""Each rank keeps its shard of weights of its own: fully_shard sends nothing."""

import sys

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy

CASE = {"shows": "replicas unequal", "found": ["unequal-init/shards-of-different-weights"], "ranks": 2}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank() if sick else 0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
for layer in (model[0], model[2]):
    fully_shard(layer)  # <- here
fully_shard(model)
draw = torch.Generator().manual_seed(dist.get_rank())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(12):
    batch = torch.randn(8, 8, generator=draw)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
