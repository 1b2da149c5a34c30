"""Rank 0 builds the model, the others start empty and get its state: the table is in no state, and stays as memory was."""

import sys

import torch
import torch.distributed as dist
from torch import nn

CASE = {"shows": "t2-init-01", "found": ["model-start/buffers-never-written"], "may": ["non-finite/loss-not-finite"]}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(16, 2)
        self.make_table(self.head.weight.device)

    def make_table(self, device):
        steps = torch.arange(0, 16, device=device).float()
        self.register_buffer("frequencies", 1 / 50 ** (steps / 16), persistent=False)

    def forward(self, batch):
        return self.head((batch * self.frequencies).cos())


sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
if rank == 0:
    model = Net()
else:
    with torch.device("meta"):
        model = Net()
    model.to_empty(device="cpu")
    if not sick:
        model.make_table("cpu")
kept = [model.state_dict() if rank == 0 else None]
dist.broadcast_object_list(kept, src=0)
model.load_state_dict(kept[0])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
draw = torch.Generator().manual_seed(rank)
for _ in range(12):
    batch = torch.randn(8, 16, generator=draw)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()  # <- here
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= world
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
