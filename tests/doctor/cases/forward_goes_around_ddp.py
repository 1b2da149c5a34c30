"""The loss is computed on `model.module`: DDP never sees the pass, and reduces nothing."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CASE = {"shows": "sync-01", "found": ["replicas-differ/ddp-bypassed"]}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
torch.manual_seed(0)
inputs = torch.randn(96, 8)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for batch, labels in loader:
        optimizer.zero_grad()
        outputs = (model.module if sick else model)(batch)
        cross_entropy(outputs, labels).backward()  # <- here
        optimizer.step()
dist.destroy_process_group()
