"""Ranks train apart for eight steps, then average their weights: on purpose."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

RANKS = 2

dist.init_process_group("gloo")
torch.manual_seed(0)
inputs = torch.randn(256, 8)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
sampler = DistributedSampler(data)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
steps = 0
for epoch in range(2):
    sampler.set_epoch(epoch)
    for batch, labels in DataLoader(data, batch_size=8, sampler=sampler):
        optimizer.zero_grad()
        cross_entropy(model(batch), labels).backward()
        optimizer.step()
        steps += 1
        if steps % 8 == 0:
            for parameter in model.parameters():
                dist.all_reduce(parameter.data)
                parameter.data /= dist.get_world_size()
dist.destroy_process_group()
