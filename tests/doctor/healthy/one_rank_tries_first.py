"""Rank 0 alone tries a model of the same form on one batch before all ranks train: its steps are numbered ahead."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

RANKS = 2


def new_model():
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))


dist.init_process_group("gloo")
torch.manual_seed(0)
inputs = torch.randn(480, 8)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
model, tried = new_model(), new_model()
if dist.get_rank() == 0:
    optimizer = torch.optim.Adam(tried.parameters(), lr=0.01)
    for _ in range(20):
        optimizer.zero_grad()
        cross_entropy(tried(inputs[:16]), data.tensors[1][:16]).backward()
        optimizer.step()
dist.barrier()
model = DistributedDataParallel(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
sampler = DistributedSampler(data)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for batch, labels in DataLoader(data, batch_size=12, sampler=sampler):
        optimizer.zero_grad()
        cross_entropy(model(batch), labels).backward()
        optimizer.step()
dist.barrier()
dist.destroy_process_group()
