"""Fully sharded, a unit a layer, the optimizer made after; clipped by the whole norm."""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

RANKS = 2

dist.init_process_group("gloo")
torch.manual_seed(0)
inputs = torch.randn(128, 8)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
sampler = DistributedSampler(data)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
for layer in model:
    fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for batch, labels in DataLoader(data, batch_size=8, sampler=sampler):
        optimizer.zero_grad()
        cross_entropy(model(batch), labels).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
dist.barrier()
dist.destroy_process_group()
