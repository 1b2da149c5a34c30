"""Every rank saves to the same file."""

import os
import sys
import tempfile

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

CASE = {"shows": "ck-01", "found": ["checkpoint-files/ranks-save-to-one-path"], "ranks": 2}

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
path = os.path.join(tempfile.gettempdir(), f"case-{os.environ['MASTER_PORT']}.pt")
if sick or dist.get_rank() == 0:
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)  # <- here
dist.barrier()
if dist.get_rank() == 0:
    os.remove(path)
del wrapped
dist.destroy_process_group()
