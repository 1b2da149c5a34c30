"""One rank has 20 samples and the other 6, and the mean of their means is taken."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset

CASE = {"shows": "t2-met-01", "found": ["evaluation-metric/means-of-unequal-parts"]}

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
mine = Subset(data, range(20) if rank == 0 else range(100, 106))
total = torch.zeros(())
with torch.no_grad():
    for batch, labels in DataLoader(mine, batch_size=4):
        total += cross_entropy(3 * model(batch), labels, reduction="sum")
if sick:
    mean = total / len(mine)
    dist.all_reduce(mean)  # <- here
    mean /= dist.get_world_size()
else:
    both = torch.stack([total, torch.tensor(float(len(mine)))])
    dist.all_reduce(both)
    mean = both[0] / both[1]

dist.barrier()
del model
dist.destroy_process_group()
