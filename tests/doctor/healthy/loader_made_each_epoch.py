"""A new loader and a new sampler for each epoch, a look at the data first, and permutations cut by hand."""

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


data = TensorDataset(inputs, labels)
mean = torch.stack([batch.mean(0) for batch, _ in DataLoader(data, batch_size=16)]).mean(0)
for epoch in range(3):
    sampler = DistributedSampler(data)
    sampler.set_epoch(epoch)
    for batch, targets in DataLoader(data, batch_size=8, sampler=sampler, num_workers=1):
        step(model, batch - mean, targets)

dist.barrier()
del model
dist.destroy_process_group()
