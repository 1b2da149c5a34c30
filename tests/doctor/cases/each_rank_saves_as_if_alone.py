"""Every rank writes all of the checkpoint to one folder, since it is told that there are no other ranks."""

import os
import shutil
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.nn.functional import cross_entropy

CASE = {
    "shows": "ck-01 with dcp",
    "found": ["checkpoint-files/ranks-save-to-one-path"],
    "ranks": 2,
}

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
folder = os.path.join(tempfile.gettempdir(), f"case-{os.environ['MASTER_PORT']}-alone")
state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
if sick:
    os.makedirs(folder, exist_ok=True)
    for rank in range(2):  # by turns, so that the case itself does not fail now and then
        if rank == dist.get_rank():
            dcp.save(state, checkpoint_id=folder, no_dist=True)  # <- here
        dist.barrier()
else:
    dcp.save(state, checkpoint_id=folder)
dist.barrier()
if dist.get_rank() == 0:
    shutil.rmtree(folder)
del wrapped
dist.destroy_process_group()
