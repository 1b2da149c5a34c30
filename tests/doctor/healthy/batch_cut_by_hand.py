"""Every rank reads the global batch, in one order, and takes its rows of it; the training accuracy is looked at too."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

RANKS = 2

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
inputs = torch.randn(128, 8)
labels = (inputs.sum(1) > 0).long()
model = DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step(model, batch, targets):
    """One update."""
    optimizer.zero_grad()
    cross_entropy(model(batch), targets).backward()
    optimizer.step()


data = TensorDataset(inputs, labels)
loader = DataLoader(data, batch_size=16, shuffle=True, generator=torch.Generator().manual_seed(7))
for _ in range(3):
    for batch, targets in loader:
        rows = slice(rank * 8, rank * 8 + 8)
        step(model, batch[rows], targets[rows])
    with torch.no_grad():
        right = sum(int((model(batch).argmax(1) == targets).sum()) for batch, targets in DataLoader(data, batch_size=32))

dist.barrier()
del model
dist.destroy_process_group()
