"""Each rank clips and applies its own gradient, and weights are averaged after each step; rank 0 evaluates alone."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

RANKS = 2

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
draw = torch.Generator().manual_seed(rank)
for step in range(16):
    batch = torch.randn(8, 8, generator=draw)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    with torch.no_grad():
        for parameter in model.parameters():
            dist.all_reduce(parameter)
            parameter /= world
    if step % 8 == 7 and rank == 0:
        model.eval()
        with torch.no_grad():
            model(torch.randn(8, 8, generator=draw))
        model.train()
dist.barrier()
dist.destroy_process_group()
