"""An ensemble: each rank trains a member of its own on all data, at a rate of its own; what they foretell is averaged."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

RANKS = 2

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
inputs = torch.randn(240, 8, generator=torch.Generator().manual_seed(0))
labels = (inputs.sum(1) > 0).long()
torch.manual_seed(100 + rank)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1 / (1 + rank))
for _ in range(3):
    for batch, wanted in DataLoader(TensorDataset(inputs[:200], labels[:200]), batch_size=10, shuffle=True):
        optimizer.zero_grad()
        cross_entropy(model(batch), wanted).backward()
        optimizer.step()
with torch.no_grad():
    foretold = model(inputs[200:]).softmax(1)
dist.all_reduce(foretold)
print((foretold.argmax(1) == labels[200:]).float().mean().item())
dist.barrier()
dist.destroy_process_group()
