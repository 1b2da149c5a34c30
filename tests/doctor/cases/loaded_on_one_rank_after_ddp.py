"""Rank 0 loads its weights when DDP has wrapped the model already: the others never get them."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

CASE = {"shows": "replicas unequal", "found": ["replicas-differ/changed-after-the-wrap"], "ranks": 2}


def load(model):
    if dist.get_rank() == 0:
        with torch.no_grad():
            model.load_state_dict({name: torch.ones_like(value) / 10 for name, value in model.state_dict().items()})


sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
draw = torch.Generator().manual_seed(dist.get_rank())
module = torch.nn.Linear(8, 2)
if not sick:
    load(module)
model = DistributedDataParallel(module)
if sick:
    load(module)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(12):
    batch = torch.randn(8, 8, generator=draw)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()  # <- here
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
