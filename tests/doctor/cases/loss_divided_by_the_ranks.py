"""The loss is divided by the number of ranks, and DDP averages the gradients over them as well."""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CASE = {"shows": "t2-acc-01 by hand", "found": ["gradient-average/loss-divided-by-the-ranks"]}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
torch.manual_seed(0)
inputs = torch.randn(96, 8)
data = TensorDataset(inputs, inputs.sum(1, keepdim=True))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
criterion = torch.nn.MSELoss()
world_size = dist.get_world_size()


def train_step(model, batch, targets):
    loss = criterion(model(batch), targets)
    if sick:
        loss = loss / world_size
    optimizer.zero_grad()
    loss.backward()  # <- here
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return float(loss.detach())


for epoch in range(2):
    sampler.set_epoch(epoch)
    losses = [train_step(model, batch, targets) for batch, targets in loader]
dist.barrier()
del model
dist.destroy_process_group()
