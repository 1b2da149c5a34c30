"""Gradients are all-reduced by hand, and nobody divides by the number of ranks."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CASE = {"shows": "sync-13", "found": ["gradient-average/gradients-summed"]}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
torch.manual_seed(0)
inputs = torch.randn(96, 8)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for batch, labels in loader:
        optimizer.zero_grad()
        loss = cross_entropy(model(batch), labels)
        loss.backward()  # <- here
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            if not sick:
                parameter.grad /= dist.get_world_size()
        optimizer.step()
dist.destroy_process_group()
