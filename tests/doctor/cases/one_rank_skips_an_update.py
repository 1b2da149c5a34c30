"""A rank skips an update by a test of its own loss, after DDP has reduced: its weights are behind from then on."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

CASE = {"shows": "t2-hang-01", "found": ["replicas-differ/updates-differ-between-ranks"], "ranks": 2}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
rank = dist.get_rank()
draw = torch.Generator().manual_seed(rank)
model = DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(12):
    batch = torch.randn(8, 8, generator=draw)
    optimizer.zero_grad()
    loss = cross_entropy(model(batch), (batch.sum(1) > 0).long())
    loss.backward()  # <- here
    spike = torch.tensor(float(rank == 1 and step == 4))
    if not sick:
        dist.all_reduce(spike, op=dist.ReduceOp.MAX)
    if spike:
        continue
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
