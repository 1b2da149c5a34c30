"""The loss has a weight of its own, an optimizer trains it, and DDP does not know it."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

CASE = {"shows": "modules outside the wrapper", "found": ["replicas-differ/model-outside-the-wrapper"], "ranks": 2}


class Tempered(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.temperature = torch.nn.Parameter(torch.ones(1))

    def forward(self, scores, labels):
        return cross_entropy(scores * self.temperature, labels)


sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
draw = torch.Generator().manual_seed(dist.get_rank())
model = DistributedDataParallel(torch.nn.Linear(8, 2))
loss_of = Tempered() if sick else DistributedDataParallel(Tempered())
optimizer = torch.optim.SGD([*model.parameters(), *loss_of.parameters()], lr=0.1)
for _ in range(12):
    batch = torch.randn(8, 8, generator=draw)
    optimizer.zero_grad()
    loss_of(model(batch), (batch.sum(1) > 0).long()).backward()  # <- here
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
