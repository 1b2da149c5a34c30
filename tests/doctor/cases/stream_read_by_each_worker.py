"""Each worker of a rank yields the whole part of the rank."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

CASE = {"shows": "data-07", "found": ["worker-duplicates/each-worker-yields-all"]}

sick = sys.argv[1] == "sick"
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


class Stream(IterableDataset):
    """Rows, one after the other."""

    def __iter__(self):
        worker = get_worker_info()
        first, of = (
            (rank, world) if sick or worker is None else (rank * worker.num_workers + worker.id, world * worker.num_workers)
        )
        for at in range(first, len(inputs), of):
            yield inputs[at], labels[at]


loader = DataLoader(Stream(), batch_size=8, num_workers=2)
for _ in range(2):
    for batch, targets in loader:  # <- here
        step(model, batch, targets)

dist.barrier()
del model
dist.destroy_process_group()
