"""A temperature is trained that belongs to no module: its gradient is this rank's alone."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

CASE = {"shows": "parameters outside the wrapper", "found": ["replicas-differ/loose-tensors-drift"], "ranks": 2}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
draw = torch.Generator().manual_seed(dist.get_rank())
model = DistributedDataParallel(torch.nn.Linear(8, 2))
temperature = torch.nn.Parameter(torch.zeros(()))
optimizer = torch.optim.SGD([*model.parameters(), temperature], lr=0.1)  # <- here
for _ in range(12):
    batch = torch.randn(8, 8, generator=draw)
    optimizer.zero_grad()
    cross_entropy(model(batch) * temperature.exp(), (batch.sum(1) > 0).long()).backward()
    if not sick:
        dist.all_reduce(temperature.grad)
        temperature.grad /= dist.get_world_size()
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
