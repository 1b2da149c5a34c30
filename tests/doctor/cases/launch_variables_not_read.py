"""Two processes are started, and the script reads no launcher's variables: each trains alone on all data."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CASE = {
    "shows": "data-15",
    "found": ["replicas-differ/ranks-never-joined"],
    "may": ["rank-duplicates/ranks-identical"],
}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
inputs = torch.randn(96, 8)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
model, sampler = torch.nn.Linear(8, 2), None
if not sick:
    dist.init_process_group("gloo")
    model, sampler = DistributedDataParallel(model), DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler, shuffle=sampler is None)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    if sampler is not None:
        sampler.set_epoch(epoch)
    for batch, labels in loader:
        optimizer.zero_grad()
        cross_entropy(model(batch), labels).backward()  # <- here
        optimizer.step()
if not sick:
    dist.barrier()
    del model
    dist.destroy_process_group()
