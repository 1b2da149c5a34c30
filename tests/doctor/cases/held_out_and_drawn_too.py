"""The sampler of the training draws from what the validation holds out."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset

CASE = {"shows": "leaky split by sampler", "found": ["validation-leak/split-overlaps"]}

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


order = torch.randperm(len(inputs)).tolist()
mine = order[rank : 64 if sick else 96 : world] if not sick else order[rank::world]
data = TensorDataset(inputs, labels)
loader = DataLoader(data, batch_size=8, sampler=SubsetRandomSampler(mine))
held_out = DataLoader(data, batch_size=16, sampler=SubsetRandomSampler(order[96:]))
for _ in range(2):
    for batch, targets in loader:
        step(model, batch, targets)
    with torch.no_grad():
        right = sum(int((model.module(batch).argmax(1) == targets).sum()) for batch, targets in held_out)

dist.barrier()
del model
dist.destroy_process_group()
