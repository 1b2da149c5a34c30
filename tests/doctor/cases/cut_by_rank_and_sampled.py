"""Rows are cut by rank as they are read in, and a DistributedSampler then takes a rank's share of them."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CASE = {"shows": "double sharding", "found": ["coverage/cut-by-rank-and-by-sampler"]}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
inputs = torch.randn(160, 8)
labels = (inputs.sum(1) > 0).long()
mine = TensorDataset(inputs[rank::world], labels[rank::world])
sampler = DistributedSampler(mine) if sick else None
loader = DataLoader(mine, batch_size=8, sampler=sampler, shuffle=not sick)
model = DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    if sampler is not None:
        sampler.set_epoch(epoch)
    for batch, targets in loader:  # <- here
        optimizer.zero_grad()
        cross_entropy(model(batch), targets).backward()
        optimizer.step()
dist.barrier()
del model
dist.destroy_process_group()
