"""A contrastive loss over the features of all ranks, gathered by a call through which no gradient flows."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy, normalize
from torch.nn.parallel import DistributedDataParallel

CASE = {"shows": "sync-11", "found": ["gathered-features/gathered-without-gradient"]}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
torch.manual_seed(0)
rank, world_size, size = dist.get_rank(), dist.get_world_size(), 8
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.Tanh(), torch.nn.Linear(16, 6)))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
draw = torch.Generator().manual_seed(rank)


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features):
        parts = [torch.empty_like(features) for _ in range(world_size)]
        dist.all_gather(parts, features.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.contiguous()
        dist.all_reduce(gradient)
        return gradient[rank * size : (rank + 1) * size]


def gathered(features):
    if not sick:
        return Gather.apply(features)
    parts = [torch.empty_like(features) for _ in range(world_size)]
    dist.all_gather(parts, features)  # <- here
    return torch.cat(parts)


for _ in range(12):
    views = torch.randn(size, 12, generator=draw)
    both = model(torch.cat([views, views + 0.1 * torch.randn(size, 12, generator=draw)]))
    one, other = normalize(both, dim=1).chunk(2)
    logits = one @ gathered(other).T / 0.1
    optimizer.zero_grad()
    cross_entropy(logits, torch.arange(size) + rank * size).backward()
    optimizer.step()
dist.barrier()
del model
dist.destroy_process_group()
