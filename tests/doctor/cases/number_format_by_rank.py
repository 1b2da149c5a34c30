"""The ranks that start empty cast a buffer that rank 0 keeps: its bytes are then read as those of another format."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

CASE = {"shows": "t2-init-03", "found": ["replicas-differ/types-differ-between-ranks"], "ranks": 2}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(8, 2)
        self.register_buffer("table", torch.linspace(0.5, 1.5, 8), persistent=False)

    def forward(self, batch):
        return self.head(batch * self.table)


sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
rank = dist.get_rank()
draw = torch.Generator().manual_seed(rank)
net = Net()
if sick and rank:
    net.table = net.table.to(torch.bfloat16)
model = DistributedDataParallel(net, broadcast_buffers=False, init_sync=False) if sick else DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    batch = torch.randn(8, 8, generator=draw)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()  # <- here
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
