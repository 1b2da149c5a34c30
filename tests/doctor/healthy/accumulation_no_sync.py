"""Gradient accumulation as the documentation has it: no_sync around all micro-batches but the last."""

import contextlib

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

RANKS = 2
K = 4

dist.init_process_group("gloo")
torch.manual_seed(0)
inputs = torch.randn(256, 8)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
model = DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for number, (batch, labels) in enumerate(loader, 1):
        last = number % K == 0
        with contextlib.nullcontext() if last else model.no_sync():
            (cross_entropy(model(batch), labels) / K).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
dist.barrier()
del model
dist.destroy_process_group()
