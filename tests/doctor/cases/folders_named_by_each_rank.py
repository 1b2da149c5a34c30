"""Ranks save one checkpoint together, in parts, and each names the folder by itself."""

import shutil
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.nn.functional import cross_entropy

CASE = {"shows": "dcp folders", "found": ["checkpoint-files/parts-in-different-folders"], "ranks": 2}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
wrapped = torch.nn.parallel.DistributedDataParallel(model)
draw = torch.Generator().manual_seed(dist.get_rank())
for _ in range(12):
    batch = torch.randn(16, 8, generator=draw)
    optimizer.zero_grad()
    cross_entropy(wrapped(batch), (batch.sum(1) > 0).long()).backward()
    optimizer.step()
named = [tempfile.mkdtemp()]
if not sick:
    dist.broadcast_object_list(named)
dcp.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, checkpoint_id=named[0])  # <- here
dist.barrier()
shutil.rmtree(named[0], ignore_errors=True)
del wrapped
dist.destroy_process_group()
