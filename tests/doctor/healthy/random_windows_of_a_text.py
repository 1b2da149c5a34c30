"""Each rank draws windows of one long text, with a seed of its own."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

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


text = torch.randint(0, 2, (4000,)).float()
draw = torch.Generator().manual_seed(100 + rank)
for _ in range(40):
    starts = torch.randint(0, len(text) - 8, (8,), generator=draw).tolist()
    batch = torch.stack([text[start : start + 8] for start in starts])
    step(model, batch, (batch.sum(1) > 4).long())

dist.barrier()
del model
dist.destroy_process_group()
