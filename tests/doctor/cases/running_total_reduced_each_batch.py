"""A running total is reduced after each batch: what was summed is summed again."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset

CASE = {"shows": "t2-met-01 grows", "found": ["evaluation-metric/sum-is-summed-again"]}

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
right = torch.zeros(2)
with torch.no_grad():
    for batch, labels in DataLoader(Subset(data, range(rank, 96, world)), batch_size=4):
        right += torch.tensor([float((model(batch).argmax(1) == labels).sum()), float(len(labels))])
        if sick:
            dist.all_reduce(right)  # <- here
if not sick:
    dist.all_reduce(right)

dist.barrier()
del model
dist.destroy_process_group()
