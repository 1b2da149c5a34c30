"""Only the blocks are sharded; what lies outside them is plain, and nobody reduces its gradients."""

import sys

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy

CASE = {"shows": "fully_shard root missing", "found": ["replicas-differ/parameters-outside-the-wrapper"], "ranks": 2}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
torch.manual_seed(0)
blocks = [torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU()) for _ in range(2)]
model = torch.nn.Sequential(torch.nn.Linear(8, 16), *blocks, torch.nn.Linear(16, 2))
for block in blocks:
    fully_shard(block)
if not sick:
    fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
draw = torch.Generator().manual_seed(dist.get_rank())
for _ in range(12):
    batch = torch.randn(8, 8, generator=draw)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()  # <- here
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
