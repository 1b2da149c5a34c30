"""Tiny discrete data: rows repeat in every batch, and each rank reads its own."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

RANKS = 2

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
inputs = torch.randn(128, 8)
labels = (inputs.sum(1) > 0).long()
model = DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step(model, batch, targets):
    """One update."""
    optimizer.zero_grad()
    cross_entropy(model(batch), targets).backward()
    optimizer.step()


codes = torch.randint(0, 3, (240,))
rows = torch.nn.functional.one_hot(codes, 8).float()
data = TensorDataset(rows, codes % 2)
sampler = DistributedSampler(data)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for batch, targets in DataLoader(data, batch_size=8, sampler=sampler):
        step(model, batch, targets)

dist.barrier()
del model
dist.destroy_process_group()
