"""A sampler shuffles, and nothing tells it the epoch. The run is ended within the first one: only the source shows it."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CASE = {"shows": "set_epoch", "found": ["order/epoch-is-never-set"], "steps": 10}

sick = sys.argv[1] == "sick"


def train_epoch(model, loader, optimizer):
    for batch, labels in loader:  # <- here
        optimizer.zero_grad()
        cross_entropy(model(batch), labels).backward()
        optimizer.step()


dist.init_process_group("gloo")
torch.manual_seed(0)
inputs = torch.randn(320, 8)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
model = DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if sick:
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
    for _ in range(4):
        train_epoch(model, loader, optimizer)
else:
    for epoch in range(4):
        loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data, seed=epoch))
        train_epoch(model, loader, optimizer)
dist.barrier()
del model
dist.destroy_process_group()
