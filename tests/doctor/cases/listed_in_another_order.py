"""Each rank lists the data in an order of its own, and a sampler shares out indices."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CASE = {"shows": "data-11", "found": ["same-index/index-is-another-sample"]}

sick = sys.argv[1] == "sick"
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


listed = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(rank if sick else 0))
data = TensorDataset(inputs[listed], labels[listed])
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for batch, targets in loader:  # <- here
        step(model, batch, targets)

dist.barrier()
del model
dist.destroy_process_group()
