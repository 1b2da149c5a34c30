"""torch's clip_grad_norm_ is given the flat shards of FullyShardedDataParallel: each rank finds another norm."""

import sys

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.nn.functional import cross_entropy

CASE = {"shows": "fs-03", "found": ["per-rank-norm/each-rank-has-a-norm-of-its-own"], "ranks": 2}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
torch.manual_seed(0)
module = torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
model = FullyShardedDataParallel(module, device_id=torch.device("cpu"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
draw = torch.Generator().manual_seed(dist.get_rank())
for _ in range(12):
    batch = torch.randn(8, 4, generator=draw)
    optimizer.zero_grad()
    cross_entropy(model(batch), batch.argmax(1)).backward()
    if sick:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05)  # <- here
    else:
        model.clip_grad_norm_(0.05)
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
