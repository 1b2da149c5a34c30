"""DDP sends no buffers: the table is constant, and what BatchNorm counts is used on rank 0 alone, which evaluates."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

RANKS = 2


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.linspace(0.5, 1.5, 8))
        self.body, self.norm, self.head = torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 2)

    def forward(self, batch):
        return self.head(self.norm(self.body(batch * self.table)).relu())


dist.init_process_group("gloo")
draw = torch.Generator().manual_seed(dist.get_rank())
model = DistributedDataParallel(Net(), broadcast_buffers=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(16):
    batch = torch.randn(16, 8, generator=draw)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
    optimizer.step()
    if step % 8 == 7:
        if dist.get_rank() == 0:
            model.eval()
            with torch.no_grad():
                for _ in range(2):
                    model(torch.randn(16, 8, generator=draw))
            model.train()
        dist.barrier()
dist.destroy_process_group()
