"""Each rank trains a model with settings of its own, and they compare scores at the end."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

RANKS = 2

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=(0.01, 0.02)[rank], weight_decay=(0.0, 0.1)[rank])
draw = torch.Generator().manual_seed(rank)
for _ in range(14):
    batch = torch.randn(8, 8, generator=draw)
    optimizer.zero_grad()
    loss = cross_entropy(model(batch), (batch.sum(1) > 0).long())
    loss.backward()
    optimizer.step()
scores = [None, None]
dist.all_gather_object(scores, float(loss))
dist.barrier()
dist.destroy_process_group()
