"""21 samples on 2 ranks: a sampler repeats one, and it counts twice."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset

CASE = {"shows": "met-01", "found": ["evaluation-metric/repeated-samples-count"]}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
inputs = torch.randn(128, 8)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
model = DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
draw = torch.Generator().manual_seed(rank)
for _ in range(8):
    batch = torch.randn(8, 8, generator=draw)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
    optimizer.step()
model.eval()
held_out = Subset(data, range(21))
sampler = DistributedSampler(held_out, shuffle=False) if sick else None
mine = held_out if sick else Subset(held_out, range(rank, 21, world))
right = torch.zeros(2)
with torch.no_grad():
    for batch, labels in DataLoader(mine, batch_size=4, sampler=sampler):
        right += torch.tensor([float((model(batch).argmax(1) == labels).sum()), float(len(labels))])
dist.all_reduce(right)  # <- here
accuracy = right[0] / right[1]

dist.barrier()
del model
dist.destroy_process_group()
