"""The body is frozen when DDP wraps the model, and unfrozen later: its gradients are not reduced."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

CASE = {
    "shows": "sync-09",
    "found": ["untrained-parameters/unfrozen-after-ddp", "replicas-differ/some-weights-drift-under-ddp"],
}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
torch.manual_seed(0)
body, head = torch.nn.Linear(8, 8), torch.nn.Linear(8, 2)
body.requires_grad_(False)
model = torch.nn.Sequential(body, torch.nn.ReLU(), head)
wrapped = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
draw = torch.Generator().manual_seed(dist.get_rank())
for step in range(16):
    if step == 4:
        body.requires_grad_(True)
        if not sick:
            del wrapped
            wrapped = DistributedDataParallel(model)
    batch = torch.randn(16, 8, generator=draw)
    optimizer.zero_grad()
    cross_entropy(wrapped(batch), (batch.sum(1) > 0).long()).backward()
    optimizer.step()
dist.barrier()
del wrapped
dist.destroy_process_group()
