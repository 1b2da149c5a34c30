"""Each rank numbers the classes for itself."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CASE = {"shows": "data-11 labels", "found": ["same-index/label-is-another"]}

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


classes = ["cat", "dog"] if sick and rank else ["dog", "cat"]
number_of = {name: at for at, name in enumerate(classes)}
numbers = torch.tensor([number_of["cat"], number_of["dog"]])
data = TensorDataset(inputs, numbers[labels])
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for batch, targets in loader:  # <- here
        step(model, batch, targets)

dist.barrier()
del model
dist.destroy_process_group()
