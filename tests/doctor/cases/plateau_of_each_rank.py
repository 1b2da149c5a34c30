"""Each rank gives its scheduler the loss of its own part of the validation data."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset

CASE = {"shows": "plateau by rank", "found": ["learning-rate-schedule/metric-differs-between-ranks"], "ranks": 2}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
torch.manual_seed(0)
inputs = torch.randn(112, 8)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
train, held_out = Subset(data, range(80)), Subset(data, range(80, 112))
sampler = DistributedSampler(train)
loader = DataLoader(train, batch_size=8, sampler=sampler)
validation = DataLoader(held_out, batch_size=16, sampler=DistributedSampler(held_out, shuffle=False))
model = DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for batch, labels in loader:
        optimizer.zero_grad()
        cross_entropy(model(batch), labels).backward()
        optimizer.step()
    with torch.no_grad():
        total = sum(cross_entropy(model(batch), labels, reduction="sum") for batch, labels in validation)
    if not sick:
        dist.all_reduce(total)
    schedule.step(float(total))  # <- here
dist.barrier()
del model
dist.destroy_process_group()
